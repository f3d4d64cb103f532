// SPDX-License-Identifier: Apache-2.0
// Programs by posix_spawn, with their output through a pipe.
#include "runtime/process.h"

#include "runtime/descriptor.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <glob.h>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

extern char** environ;  // POSIX: declared by the program itself

namespace tilewright::detail {
namespace {

[[noreturn]] void fail(const std::string& call, const std::string& path, int error) {
  throw Error(ErrorKind::user, call + " " + path + ": " + std::generic_category().message(error));
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void wait_for(pid_t child, ProgramResult& result) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
}

}  // namespace

ProgramResult run_program(const std::string& path, const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe for", path, errno);
  Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);

  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  pid_t child = 0;
  int error = posix_spawn(&child, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("cannot run", path, error);

  writer.close();
  ProgramResult result;
  result.output = read_all(reader.get());
  wait_for(child, result);
  return result;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> find_in_python_packages(const char* pattern) {
  std::vector<std::string> roots{"/usr/local/lib/python3*/*-packages",
                                 "/usr/lib/python3*/*-packages"};
  std::string venv = environment("VIRTUAL_ENV");
  std::string home = environment("HOME");
  if (!home.empty()) roots.insert(roots.begin(), home + "/.local/lib/python3*/site-packages");
  if (!venv.empty()) roots.insert(roots.begin(), venv + "/lib/python3*/site-packages");
  std::vector<std::string> found;
  for (const std::string& root : roots) {
    glob_t matches{};
    if (glob((root + "/" + pattern).c_str(), 0, nullptr, &matches) == 0) {
      found.insert(found.end(), matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
    }
    globfree(&matches);
  }
  return found;
}

std::vector<std::string> find_programs(const char* name, const char* override_variable) {
  std::string chosen = environment(override_variable);
  if (!chosen.empty()) return {chosen};
  std::vector<std::string> candidates;
  std::string path = environment("PATH");
  for (std::size_t from = 0; from <= path.size() && !path.empty();) {
    std::size_t end = std::min(path.find(':', from), path.size());
    if (end > from) candidates.push_back(path.substr(from, end - from) + "/" + name);
    from = end + 1;
  }
  candidates.push_back(std::string("/usr/local/cuda/bin/") + name);
  for (const char* package : {"nvidia/cu*/bin/", "nvidia/cuda_nvcc/bin/"}) {
    std::vector<std::string> wheels =
        find_in_python_packages((package + std::string(name)).c_str());
    candidates.insert(candidates.end(), wheels.begin(), wheels.end());
  }
  std::erase_if(candidates,
                [](const std::string& file) { return access(file.c_str(), X_OK) != 0; });
  return candidates;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string parent = environment("TMPDIR");
  path_ = (parent.empty() ? "/tmp" : parent) + "/tilewright-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) fail("cannot make a directory", path_, errno);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) fail("cannot write", path, errno);
}

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) fail("cannot read", path, errno);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) fail("cannot read", path, errno);
  return bytes;
}

}  // namespace tilewright::detail

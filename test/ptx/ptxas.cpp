// SPDX-License-Identifier: Apache-2.0
// Runs the ptxas program, found in CUDA_HOME, /usr/local/cuda or the path.
#include "ptx/ptxas.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tilewright::ptx::test {
namespace {

namespace fs = std::filesystem;

std::string find_ptxas() {
  std::string directories = "/usr/local/cuda/bin";
  if (const char* home = std::getenv("CUDA_HOME")) directories = std::string(home) + "/bin";
  if (const char* path = std::getenv("PATH")) directories += std::string(":") + path;
  std::istringstream in(directories);
  for (std::string directory; std::getline(in, directory, ':');)
    if (fs::exists(fs::path(directory) / "ptxas")) return directory + "/ptxas";
  return "";
}

const std::string& ptxas() {
  static const std::string path = find_ptxas();
  return path;
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// "ptxas FILE, line 41; error   : MESSAGE"
void collect(const std::string& output, std::map<std::uint32_t, std::string>& errors) {
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(", line ");
    const std::size_t message = line.find("; error");
    if (at == std::string::npos || message == std::string::npos) continue;
    errors.try_emplace(static_cast<std::uint32_t>(std::stoul(line.substr(at + 7))),
                       line.substr(message + 2));
  }
}

}  // namespace

bool has_ptxas() { return !ptxas().empty(); }

Assembled assemble(const std::string& text, const std::string& target) {
  std::string directory = (fs::temp_directory_path() / "tilewright-ptx-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return {};
  const fs::path dir = directory;
  std::ofstream(dir / "k.ptx") << text;
  const std::string command = ptxas() + " -arch=" + target + " " + (dir / "k.ptx").string() +
                              " -o " + (dir / "k.cubin").string() + " > " + (dir / "log").string() +
                              " 2>&1";
  Assembled out;
  out.ok = std::system(command.c_str()) == 0;
  out.output = read(dir / "log");
  if (out.ok) out.cubin = read(dir / "k.cubin");
  collect(out.output, out.errors);
  fs::remove_all(dir);
  return out;
}

}  // namespace tilewright::ptx::test

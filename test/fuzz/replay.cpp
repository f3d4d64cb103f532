// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where it is absent: runs a fuzz target on every file of some folders, and
// on mutations of each. With --runs it is the fuzz job: so many mutations, a limit on the time of
// each, and a record of the run as JSON.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;
namespace fs = std::filesystem;

constexpr int kMutationsPerFile = 200;  // a few seconds over the whole corpus
constexpr unsigned kSecondsPerInput = 20;
constexpr std::size_t kMostBytes = 32'768;  // larger files have nothing that smaller ones lack

struct Arguments {
  std::vector<std::string> folders;
  std::uint64_t runs = 0;  ///< 0: kMutationsPerFile of each file
  unsigned seed = 1;       ///< the same mutations at each run
  std::string json;
};

/// The input that runs: written to a file when it takes too long or crashes.
const Bytes* current = nullptr;

void keep_input(int signal) {
  if (current != nullptr) {
    if (std::FILE* f = std::fopen("fuzz_input", "wb")) {
      std::fwrite(current->data(), 1, current->size(), f);
      std::fclose(f);
    }
  }
  std::fputs(signal == SIGALRM ? "error: an input takes too long; it is in fuzz_input\n"
                               : "error: crash; the input is in fuzz_input\n",
             stderr);
  std::_Exit(1);
}

Bytes read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

/// One to four edits: a byte changed, a run removed, repeated or brought from elsewhere, or a line
/// removed.
Bytes mutate(Bytes bytes, std::mt19937& random) {
  auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const auto at = static_cast<std::ptrdiff_t>(below(bytes.size()));
    const std::size_t rest = bytes.size() - static_cast<std::size_t>(at);
    const auto run = static_cast<std::ptrdiff_t>(below(std::min<std::size_t>(rest, 16) + 1));
    switch (below(5)) {
      case 0:
        if (rest > 0) bytes[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(below(256));
        break;
      case 1:
        bytes.erase(bytes.begin() + at, bytes.begin() + at + run);
        break;
      case 2: {
        const Bytes copy(bytes.begin() + at, bytes.begin() + at + run);
        bytes.insert(bytes.begin() + at, copy.begin(), copy.end());
        break;
      }
      case 3: {
        const auto to = static_cast<std::ptrdiff_t>(below(bytes.size()));
        const std::size_t length = below(std::min<std::size_t>(rest, 200) + 1);
        const Bytes copy(bytes.begin() + at,
                         bytes.begin() + at + static_cast<std::ptrdiff_t>(length));
        bytes.insert(bytes.begin() + to, copy.begin(), copy.end());
        break;
      }
      default: {
        const auto end = std::find(bytes.begin() + at, bytes.end(), std::uint8_t{'\n'});
        bytes.erase(bytes.begin() + at, end);
      }
    }
  }
  return bytes;
}

void try_input(const Bytes& bytes) {
  current = &bytes;
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  alarm(0);
  current = nullptr;
}

std::vector<fs::path> files_in(const std::vector<std::string>& folders) {
  std::vector<fs::path> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const std::vector<fs::path>& files, std::mt19937& random) {
  for (const auto& file : files) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);  // names the culprit when the target crashes
    const Bytes bytes = read(file);
    try_input(bytes);
    for (int i = 0; i < kMutationsPerFile; ++i)
      try_input(mutate(bytes, random));
  }
  std::printf("%zu files, %d mutations of each\n", files.size(), kMutationsPerFile);
}

/// The fuzz job: mutations of files chosen at random. What is damaged is text of all the corpus.
int search(const std::vector<fs::path>& files, const Arguments& arguments, std::mt19937& random) {
  std::vector<Bytes> originals;
  for (const auto& file : files) {
    Bytes bytes = read(file);
    if (bytes.size() <= kMostBytes) originals.push_back(std::move(bytes));
  }
  const auto begin = std::chrono::steady_clock::now();
  double slowest = 0;
  for (std::uint64_t i = 0; i < arguments.runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    try_input(mutate(originals[random() % originals.size()], random));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    slowest = std::max(slowest, took.count());
  }
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
#if defined(__SANITIZE_ADDRESS__)
  const char* const sanitizers = "address, undefined";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  const char* const sanitizers = "address, undefined";
#else
  const char* const sanitizers = "none";
#endif
#else
  const char* const sanitizers = "none";
#endif
  std::FILE* out = arguments.json.empty() ? stdout : std::fopen(arguments.json.c_str(), "w");
  if (out == nullptr) return 2;
  std::fprintf(out,
               "{\"seed\": %u, \"files\": %zu, \"mutated\": %llu, \"seconds\": %.1f, "
               "\"slowest_ms\": %.1f, \"sanitizers\": \"%s\", \"failures\": 0}\n",
               arguments.seed, originals.size(), static_cast<unsigned long long>(arguments.runs),
               all.count(), 1e3 * slowest, sanitizers);
  if (out != stdout) std::fclose(out);
  return 0;
}

bool parse_arguments(int argc, char** argv, Arguments& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--")) {
      if (!fs::is_directory(word)) return false;
      out.folders.emplace_back(word);
      continue;
    }
    if (++i == argc) return false;
    if (word == "--runs") {
      out.runs = std::strtoull(argv[i], nullptr, 10);
    } else if (word == "--seed") {
      out.seed = static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10));
    } else if (word == "--json") {
      out.json = argv[i];
    } else {
      return false;
    }
  }
  return !out.folders.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse_arguments(argc, argv, arguments)) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER... [--runs N] [--seed N] [--json FILE]\n",
                 argv[0]);
    return 2;
  }
  const std::vector<fs::path> files = files_in(arguments.folders);
  if (files.empty()) {
    std::fprintf(stderr, "error: the corpus %s is empty\n", arguments.folders[0].c_str());
    return 2;
  }
  for (const int signal : {SIGALRM, SIGILL, SIGTRAP, SIGABRT})
    std::signal(signal, keep_input);
  std::mt19937 random(arguments.seed);
  if (arguments.runs != 0) return search(files, arguments, random);
  replay(files, random);
  return 0;
}

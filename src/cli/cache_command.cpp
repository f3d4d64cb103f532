// SPDX-License-Identifier: Apache-2.0
// `tilewright cache`: the entries of the kernel cache on disk.
#include "cli/json.h"
#include "cli/program.h"
#include "cli/text.h"
#include "tilewright/cache.h"

#include <memory>

namespace tilewright::cli {
namespace {

Json json_of(const CacheEntry& entry) {
  return {{"file", entry.file},      {"bytes", entry.size_bytes},    {"last_use", entry.modified_s},
          {"target", entry.target},  {"assembler", entry.assembler}, {"entry", entry.entry},
          {"problem", entry.problem}};
}

/// Where the entries are, in words too if there is no such place.
std::string directory_of(const KernelCache& cache) {
  const CacheOptions& options = cache.options();
  const std::string directory =
      options.directory.empty() ? default_cache_directory() : options.directory;
  return !options.disk || directory.empty() ? "no cache on disk" : directory;
}

std::string text_of(const std::string& directory, const std::vector<CacheEntry>& entries) {
  Columns columns;
  std::int64_t total = 0;
  std::int64_t bad = 0;
  for (const CacheEntry& entry : entries) {
    total += entry.size_bytes;
    bad += entry.problem.empty() ? 0 : 1;
    columns.add({entry.file, bytes_text(entry.size_bytes), entry.target, entry.assembler,
                 entry.entry, entry.problem.empty() ? "" : "REFUSED: " + entry.problem});
  }
  return columns.text() + directory + ": " +
         plural(static_cast<std::int64_t>(entries.size()), "entry") + ", " + bytes_text(total) +
         (bad == 0 ? "" : ", " + grouped(bad) + " refused") + "\n";
}

void show(Program& program, const std::vector<CacheEntry>& entries, Format format) {
  const std::string directory = directory_of(KernelCache::global());
  for (const CacheEntry& entry : entries) {
    if (!entry.problem.empty()) program.exit = Exit::findings;
  }
  if (format == Format::text) {
    print(text_of(directory, entries));
    return;
  }
  Json json = {{"directory", directory}, {"entries", Json::array()}};
  for (const CacheEntry& entry : entries)
    json["entries"].push_back(json_of(entry));
  print_json(json);
}

void clear(Format format) {
  KernelCache& cache = KernelCache::global();
  const std::int64_t removed = cache.clear();
  if (format == Format::json) {
    print_json({{"directory", directory_of(cache)}, {"removed", removed}});
  } else {
    print(directory_of(cache) + ": removed " + plural(removed, "entry") + "\n");
  }
}

}  // namespace

void add_cache_command(CLI::App& app, Program& program) {
  auto format = std::make_shared<Format>(Format::text);
  CLI::App* command = app.add_subcommand("cache", "List, clear or verify the kernels on disk");
  command->require_subcommand(1);
  CLI::App* list = command->add_subcommand("list", "List entries");
  list->callback([&program, format] { show(program, KernelCache::global().list(), *format); });
  CLI::App* removal = command->add_subcommand("clear", "Remove every entry");
  removal->callback([format] { clear(*format); });
  CLI::App* verify =
      command->add_subcommand("verify", "Check every byte; exit code 3 if an entry is refused");
  verify->callback([&program, format] { show(program, KernelCache::global().verify(), *format); });
  for (CLI::App* each : {list, removal, verify})
    add_json_flag(*each, *format);
}

}  // namespace tilewright::cli

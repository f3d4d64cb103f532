// SPDX-License-Identifier: Apache-2.0
// Kernels on disk: front keys that lead to PTX keys, and machine code by PTX key.
#pragma once

#include "runtime/cache_entry.h"
#include "runtime/private_directory.h"
#include "runtime/ptx_key.h"
#include "tilewright/cache.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::detail {

/// What a front key leads to.
struct FrontRecord {
  Hash ptx_key;
  std::string entry;
  std::string metadata;
};

/// The CUDA version (13000) of an assembler's "NAME 13.0.88"; 0 if it does not say.
int cuda_version_of(const std::string& assembler);

/// Facts about machine code that are kept with it for people to read.
struct CodeFacts {
  ptx::Target target;
  std::string entry;
  std::size_t ptx_bytes = 0;
  int driver_version = 0;
};

/// Thread-safe. Never throws for what the file system does: it warns, and the kernel is made
/// uncached.
class DiskCache {
 public:
  explicit DiskCache(const CacheOptions& options);

  std::optional<FrontRecord> find_front(const std::string& front_key);
  void store_front(const std::string& front_key, const FrontRecord& record);

  /// Passes over machine code of assemblers newer than CUDA `max_cuda`.
  std::optional<Assembled> find_code(const Hash& ptx_key, int max_cuda);
  void store_code(const Hash& ptx_key, const Assembled& code, const CodeFacts& facts);

  /// Waits for whoever assembles the key; `waited` says whether it had to.
  FileLock lock(const Hash& ptx_key, bool& waited);

  enum class Check { heads, all_bytes };
  std::vector<CacheEntry> entries(Check check);
  std::int64_t clear();

  void warn(const std::string& text);  ///< remembers it, each text once
  std::vector<std::string> warnings() const;
  std::int64_t rejected() const { return rejected_; }

 private:
  bool usable();
  std::optional<EntryFile> load(const std::string& name);
  void store(const std::string& name, const EntryFile& file);
  void evict_if_due(std::int64_t stored_bytes);
  void evict();

  PrivateDirectory directory_;
  std::int64_t max_bytes_;
  std::once_flag prepared_;
  std::atomic<bool> enabled_;
  std::atomic<std::int64_t> rejected_{0};
  std::atomic<std::int64_t> stored_since_eviction_;
  mutable std::mutex warnings_mutex_;
  std::vector<std::string> warnings_;
};

}  // namespace tilewright::detail

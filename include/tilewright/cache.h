// SPDX-License-Identifier: Apache-2.0
// Kernels made once: in memory by front key, on disk by front key and by PTX.
#pragma once

#include "tilewright/bundle.h"
#include "tilewright/kernel.h"

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tilewright {

namespace ptx {
enum class LineInfo : std::uint8_t;
}  // namespace ptx

/// What a trace yields.
struct KernelSource {
  std::string ptx{};
  std::string entry{};
  std::string metadata{};  ///< kept with the machine code, see Kernel::metadata()
};

/// A reference to a callable `KernelSource(ptx::LineInfo)`; valid while the callable lives. It gets
/// LineInfo::on on emulated devices, whose findings name source lines.
class TraceRef {
 public:
  template <typename F>
  requires(!std::same_as<std::remove_cvref_t<F>, TraceRef>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      TraceRef(F&& function)  // converts at the call; constrained above
      : object_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* object, ptx::LineInfo info) -> KernelSource {
          return (*static_cast<std::remove_reference_t<F>*>(object))(info);
        }) {}
  KernelSource operator()(ptx::LineInfo info) const { return call_(object_, info); }

 private:
  void* object_;
  KernelSource (*call_)(void*, ptx::LineInfo);
};

enum class CompileMode : std::uint8_t {
  allowed,
  refused  ///< what no bundle and no entry on disk has is an Error(unsupported)
};

struct CacheOptions {
  std::string directory{};  ///< empty: default_cache_directory()
  bool disk = true;
  std::int64_t max_bytes = std::int64_t{1} << 30;  ///< least recently used entries go first
  bool verify_hits = false;  ///< re-trace every hit and compare the PTX: on in all tests
  CompileMode compile = CompileMode::allowed;
};
/// $TILEWRIGHT_CACHE_DIR, else $XDG_CACHE_HOME/tilewright, else ~/.cache/tilewright; empty: none.
std::string default_cache_directory();

/// How often what happened, since the cache was made.
struct CacheCounters {
  std::int64_t memory_hits = 0;
  std::int64_t bundle_hits = 0;
  std::int64_t front_hits = 0;  ///< on disk by front key: no trace
  std::int64_t ptx_hits = 0;    ///< on disk by PTX: traced, not assembled
  std::int64_t assembled = 0;
  std::int64_t waited = 0;    ///< for another process that assembled the same key
  std::int64_t rejected = 0;  ///< damaged or foreign entries
  std::int64_t verified = 0;  ///< hits that were re-traced
};

/// An entry on disk.
struct CacheEntry {
  std::string file;  ///< name in the directory
  std::int64_t size_bytes = 0;
  std::int64_t modified_s = 0;  ///< Unix time of the last use
  std::string target, assembler, entry;
  std::string problem;  ///< why it would be refused; empty: it is sound
};

/// Thread-safe; several threads and processes that want one key assemble it once.
class KernelCache {
 public:
  explicit KernelCache(CacheOptions options = {});
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;
  /// The one that library calls use. TILEWRIGHT_VERIFY_CACHE=1 turns verify_hits on,
  /// TILEWRIGHT_CACHE=off the disk off, TILEWRIGHT_COMPILE=off refuses to compile;
  /// TILEWRIGHT_BUNDLES=A:B adds those bundles, the last one first in line.
  static KernelCache& global();

  /// The kernel of `front_key`: from this device's memory, from disk, or traced and assembled.
  /// The key must name everything that `trace` depends on, the target apart: the cache adds it.
  Kernel get(const Device& device, std::string_view front_key, TraceRef trace,
             const AssembleOptions& options = {}, SourceLoc at = SourceLoc::here());

  /// The machine code of `front_key` without a device, from disk or traced and assembled. Throws
  /// Error(unsupported) where there is no assembler but a driver's.
  Assembled assemble(ptx::Target target, std::string_view front_key, TraceRef trace,
                     const AssembleOptions& options = {}, SourceLoc at = SourceLoc::here());

  /// GPUs take kernels from this bundle from here on, before older bundles and the disk; also those
  /// that are in memory: their code changes at the next get(), and unloads when nothing uses it.
  void add(const Bundle& bundle);

  CacheCounters counters() const;
  /// The front keys that were traced and assembled, in that order: what a bundle should have had.
  std::vector<std::string> compiled() const;
  /// What went wrong without stopping anything (no permission, disk full, refused entries), oldest
  /// first, each text once.
  std::vector<std::string> warnings() const;
  const CacheOptions& options() const;

  std::vector<CacheEntry> list() const;    ///< by file name; reads headers
  std::vector<CacheEntry> verify() const;  ///< as list(), after checking every byte
  std::int64_t clear();                    ///< removes every entry; how many there were

 private:
  struct State;
  State* state_;
};

}  // namespace tilewright

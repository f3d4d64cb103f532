// SPDX-License-Identifier: Apache-2.0
// Kernels by front key: each is made once a device, and assembled once a machine.
#include "tilewright/cache.h"

#include "runtime/assemblers.h"
#include "runtime/backend.h"
#include "runtime/disk_cache.h"
#include "runtime/process.h"
#include "tilewright/module.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tilewright {
namespace detail {

/// The kernels of one device. A slot without a kernel is being filled by some thread.
struct MemoryCache {
  struct Slot {
    AssembleOptions options;
    Ref<LoadedKernel> kernel;
    Hash ptx_key;
  };
  struct Hasher {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return short_hash_of(text); }
  };
  std::shared_mutex mutex;
  std::condition_variable_any filled;
  std::unordered_map<std::string, std::vector<Slot>, Hasher, std::equal_to<>> slots;

  struct Hit {
    Ref<LoadedKernel> kernel;
    Hash ptx_key;
  };
  /// Without a kernel if there is none yet.
  Hit look_up(std::string_view key, const AssembleOptions& options) {
    std::shared_lock lock(mutex);
    const Slot* slot = find(key, options);
    return slot == nullptr ? Hit{} : Hit{slot->kernel, slot->ptx_key};
  }
  /// Waits for a thread that makes the kernel; without a kernel the slot is the caller's to fill.
  Hit wait_or_claim(std::string_view key, const AssembleOptions& options) {
    std::unique_lock lock(mutex);
    for (;;) {
      const Slot* slot = find(key, options);
      if (slot == nullptr) {
        slots[std::string(key)].push_back({options, {}, {}});
        return {};
      }
      if (slot->kernel) return {slot->kernel, slot->ptx_key};
      filled.wait(lock);
    }
  }
  Slot* find(std::string_view key, const AssembleOptions& options) {
    auto found = slots.find(key);
    if (found == slots.end()) return nullptr;
    for (Slot& slot : found->second) {
      if (slot.options == options) return &slot;
    }
    return nullptr;
  }
  void drop(std::string_view key, const AssembleOptions& options) {
    auto found = slots.find(key);
    if (found == slots.end()) return;
    std::erase_if(found->second, [&](const Slot& slot) { return slot.options == options; });
  }
};

void MemoryCacheDeleter::operator()(MemoryCache* cache) const noexcept { delete cache; }
MemoryCache* make_memory_cache() { return new MemoryCache; }

namespace {

struct Counters {
  std::atomic<std::int64_t> memory_hits{0}, front_hits{0}, ptx_hits{0}, assembled{0}, waited{0},
      verified{0};
};

/// One request for a kernel, with all that decides it.
struct Request {
  ptx::Target target;
  DeviceKind kind;
  int max_cuda;  ///< the driver's CUDA version; 0: any machine code will do
  std::string_view front_key;
  TraceRef trace;
  const AssembleOptions& options;
  SourceLoc at;

  KernelSource traced() const {
    bool lines = kind == DeviceKind::emulated || options.line_info;
    return trace(lines ? ptx::LineInfo::on : ptx::LineInfo::off);
  }
  std::string disk_key() const {
    return std::string(front_key) + "\n" + ptx::to_string(target) + "\n" + canonical_text(options);
  }
  /// What decides machine code: the text, without its lines unless they are kept, and how.
  Hash ptx_key(const KernelSource& source) const {
    std::string text = options.line_info ? source.ptx : without_source_lines(source.ptx);
    text += '\0' + ptx::to_string(target) + '\0' + canonical_text(options);
    return hash_of(text);
  }
};

/// Code that is ready to be loaded. Its machine code is empty where the device takes PTX, its PTX
/// where the front key was found on disk.
struct Code {
  Assembled assembled;
  KernelSource source;
  Hash ptx_key;
};

class Maker {
 public:
  Maker(DiskCache& disk, Counters& counters, const Request& request)
      : disk_(disk), counters_(counters), request_(request) {}

  Code make() {
    if (request_.kind == DeviceKind::emulated) {
      KernelSource source = request_.traced();
      Hash key = request_.ptx_key(source);
      return {{}, std::move(source), key};
    }
    if (std::optional<Code> hit = from_front()) return std::move(*hit);
    KernelSource source = request_.traced();
    Hash key = request_.ptx_key(source);
    std::optional<Assembled> assembled = machine_code(source, key);
    if (!assembled) return {{}, std::move(source), key};
    disk_.store_front(request_.disk_key(), {key, source.entry, source.metadata});
    return {std::move(*assembled), std::move(source), key};
  }

 private:
  std::optional<Code> from_front() {
    std::optional<FrontRecord> front = disk_.find_front(request_.disk_key());
    if (!front) return std::nullopt;
    std::optional<Assembled> assembled = disk_.find_code(front->ptx_key, request_.max_cuda);
    if (!assembled) return std::nullopt;
    ++counters_.front_hits;
    KernelSource source{.ptx = {}, .entry = front->entry, .metadata = front->metadata};
    return Code{std::move(*assembled), std::move(source), front->ptx_key};
  }

  std::optional<Assembled> from_disk(const Hash& key) {
    std::optional<Assembled> found = disk_.find_code(key, request_.max_cuda);
    if (found) ++counters_.ptx_hits;
    return found;
  }

  /// From disk, or assembled by the first process that holds the key's lock. Nothing where no
  /// assembler makes any.
  std::optional<Assembled> machine_code(const KernelSource& source, const Hash& key) {
    if (std::optional<Assembled> found = from_disk(key)) return found;
    std::optional<Assembler> assembler =
        choose_for_device(source.ptx, request_.max_cuda, request_.options, request_.at);
    if (!assembler) return std::nullopt;
    bool waited = false;
    FileLock lock = disk_.lock(key, waited);
    if (waited) ++counters_.waited;
    // Another process may have made it since we looked.
    if (std::optional<Assembled> found = from_disk(key)) return found;
    AssembleJob job{source.ptx, request_.target, request_.options};
    Assembled made = assemble_with(*assembler, job, request_.at);
    ++counters_.assembled;
    disk_.store_code(key, made,
                     {.target = request_.target,
                      .entry = source.entry,
                      .ptx_bytes = source.ptx.size(),
                      .driver_version = request_.max_cuda});
    return made;
  }

  DiskCache& disk_;
  Counters& counters_;
  const Request& request_;
};

}  // namespace
}  // namespace detail

struct KernelCache::State {
  explicit State(CacheOptions with) : options(std::move(with)), disk(options) {}
  CacheOptions options;
  detail::DiskCache disk;
  detail::Counters counters;

  detail::Code make(const detail::Request& request) {
    detail::Code code = detail::Maker(disk, counters, request).make();
    bool from_front = code.source.ptx.empty();
    if (options.verify_hits && from_front) {
      verify(request, code.source.entry, code.source.metadata, code.ptx_key);
    }
    return code;
  }
  Kernel fill(const Device& device, const detail::Request& request);
  void verify(const detail::Request& request, const std::string& entry, const std::string& metadata,
              const detail::Hash& ptx_key);
};

/// Pre: the slot of this request was claimed by this thread.
Kernel KernelCache::State::fill(const Device& device, const detail::Request& request) {
  detail::MemoryCache& memory = *device.backend().kernels;
  try {
    detail::Code code = make(request);
    detail::LoadRequest load{.assembled = std::move(code.assembled),
                             .ptx = std::move(code.source.ptx),
                             .entry = std::move(code.source.entry),
                             .metadata = std::move(code.source.metadata),
                             .options = request.options};
    detail::Ref<detail::LoadedKernel> loaded = device.backend().load(std::move(load), request.at);
    std::unique_lock lock(memory.mutex);
    detail::MemoryCache::Slot* slot = memory.find(request.front_key, request.options);
    slot->kernel = loaded;
    slot->ptx_key = code.ptx_key;
    memory.filled.notify_all();
    return Kernel(device, std::move(loaded));
  } catch (...) {
    std::unique_lock lock(memory.mutex);
    memory.drop(request.front_key, request.options);
    memory.filled.notify_all();
    throw;
  }
}

void KernelCache::State::verify(const detail::Request& request, const std::string& entry,
                                const std::string& metadata, const detail::Hash& ptx_key) {
  ++counters.verified;
  KernelSource source = request.traced();
  const char* differs = request.ptx_key(source) != ptx_key ? "PTX"
                        : source.entry != entry            ? "entry name"
                        : source.metadata != metadata      ? "metadata"
                                                           : nullptr;
  if (differs == nullptr) return;
  throw Error(ErrorKind::internal,
              "kernel cache: the front key '" + std::string(request.front_key) +
                  "' now leads to another " + differs +
                  " than when it was stored; the key misses something that the trace depends on, "
                  "or the operator's version was not raised",
              request.at);
}

KernelCache::KernelCache(CacheOptions options) : state_(new State(std::move(options))) {}
KernelCache::~KernelCache() { delete state_; }

KernelCache& KernelCache::global() {
  static KernelCache cache(
      CacheOptions{.directory = {},
                   .disk = detail::environment("TILEWRIGHT_CACHE") != "off",
                   .verify_hits = detail::environment("TILEWRIGHT_VERIFY_CACHE") == "1"});
  return cache;
}

Kernel KernelCache::get(const Device& device, std::string_view front_key, TraceRef trace,
                        const AssembleOptions& options, SourceLoc at) {
  const DeviceProperties& properties = device.properties();
  detail::Request request{
      properties.target, device.kind(), properties.driver_version, front_key, trace, options, at};
  detail::MemoryCache& memory = *device.backend().kernels;
  detail::MemoryCache::Hit hit = memory.look_up(front_key, options);
  if (!hit.kernel) hit = memory.wait_or_claim(front_key, options);
  if (!hit.kernel) return state_->fill(device, request);
  state_->counters.memory_hits.fetch_add(1, std::memory_order_relaxed);
  if (state_->options.verify_hits) {
    const detail::LoadRequest& source = hit.kernel->source;
    state_->verify(request, source.entry, source.metadata, hit.ptx_key);
  }
  return Kernel(device, std::move(hit.kernel));
}

Assembled KernelCache::assemble(ptx::Target target, std::string_view front_key, TraceRef trace,
                                const AssembleOptions& options, SourceLoc at) {
  detail::Request request{target, DeviceKind::cuda, 0, front_key, trace, options, at};
  detail::Code code = state_->make(request);
  if (!code.assembled.bytes.empty()) return std::move(code.assembled);
  return tilewright::assemble(code.source.ptx, target, options, 0, at);  // says why there is none
}

CacheCounters KernelCache::counters() const {
  const detail::Counters& counters = state_->counters;
  return {.memory_hits = counters.memory_hits,
          .front_hits = counters.front_hits,
          .ptx_hits = counters.ptx_hits,
          .assembled = counters.assembled,
          .waited = counters.waited,
          .rejected = state_->disk.rejected(),
          .verified = counters.verified};
}

std::vector<std::string> KernelCache::warnings() const { return state_->disk.warnings(); }
const CacheOptions& KernelCache::options() const { return state_->options; }
std::vector<CacheEntry> KernelCache::list() const {
  return state_->disk.entries(detail::DiskCache::Check::heads);
}
std::vector<CacheEntry> KernelCache::verify() const {
  return state_->disk.entries(detail::DiskCache::Check::all_bytes);
}
std::int64_t KernelCache::clear() { return state_->disk.clear(); }

std::string default_cache_directory() {
  if (std::string chosen = detail::environment("TILEWRIGHT_CACHE_DIR"); !chosen.empty()) {
    return chosen;
  }
  if (std::string base = detail::environment("XDG_CACHE_HOME"); !base.empty()) {
    return base + "/tilewright";
  }
  std::string home = detail::environment("HOME");
  return home.empty() ? home : home + "/.cache/tilewright";
}

}  // namespace tilewright

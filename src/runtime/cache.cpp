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
  const Device& device;
  std::string_view front_key;
  TraceRef trace;
  const AssembleOptions& options;
  SourceLoc at;

  bool emulated() const { return device.kind() == DeviceKind::emulated; }
  KernelSource traced() const {
    bool lines = emulated() || options.line_info;
    return trace(lines ? ptx::LineInfo::on : ptx::LineInfo::off);
  }
  std::string disk_key() const {
    return std::string(front_key) + "\n" + ptx::to_string(device.target()) + "\n" +
           canonical_text(options);
  }
  /// What decides machine code: the text, without its lines unless they are kept, and how.
  Hash ptx_key(const KernelSource& source) const {
    std::string text = options.line_info ? source.ptx : without_source_lines(source.ptx);
    text += '\0' + ptx::to_string(device.target()) + '\0' + canonical_text(options);
    return hash_of(text);
  }
};

struct Made {
  Ref<LoadedKernel> kernel;
  Hash ptx_key;
};

class Maker {
 public:
  Maker(DiskCache& disk, Counters& counters, const Request& request)
      : disk_(disk), counters_(counters), request_(request) {}

  Made make() {
    if (!request_.emulated()) {
      if (std::optional<Made> hit = from_front()) return std::move(*hit);
    }
    KernelSource source = request_.traced();
    Hash key = request_.ptx_key(source);
    if (request_.emulated()) return load({}, std::move(source), key);
    std::optional<Assembled> code = code_for(source, key);
    if (!code) return load({}, std::move(source), key);  // the driver assembles
    disk_.store_front(request_.disk_key(), {key, source.entry, source.metadata});
    return load(std::move(*code), std::move(source), key);
  }

 private:
  int driver_version() const { return request_.device.properties().driver_version; }

  Made load(Assembled code, KernelSource source, const Hash& key) {
    LoadRequest load_request{.assembled = std::move(code),
                             .ptx = std::move(source.ptx),
                             .entry = std::move(source.entry),
                             .metadata = std::move(source.metadata),
                             .options = request_.options};
    return {request_.device.backend().load(std::move(load_request), request_.at), key};
  }

  std::optional<Made> from_front() {
    std::optional<FrontRecord> front = disk_.find_front(request_.disk_key());
    if (!front) return std::nullopt;
    std::optional<Assembled> code = disk_.find_code(front->ptx_key, driver_version());
    if (!code) return std::nullopt;
    ++counters_.front_hits;
    KernelSource source{.ptx = {}, .entry = front->entry, .metadata = front->metadata};
    return load(std::move(*code), std::move(source), front->ptx_key);
  }

  /// Machine code from disk, or assembled by the first process that holds the key's lock. Nothing
  /// where no assembler makes any.
  std::optional<Assembled> code_for(const KernelSource& source, const Hash& key) {
    if (std::optional<Assembled> code = disk_.find_code(key, driver_version())) {
      ++counters_.ptx_hits;
      return code;
    }
    if (request_.options.assembler == "driver") return std::nullopt;
    AssemblerChoice choice = choose_assembler(ptx_version(source.ptx, request_.at),
                                              driver_version(), request_.options.assembler);
    if (!choice.chosen) return std::nullopt;
    bool waited = false;
    FileLock lock = disk_.lock(key, waited);
    if (waited) ++counters_.waited;
    if (std::optional<Assembled> code = disk_.find_code(key, driver_version())) {
      ++counters_.ptx_hits;  // made by another process since we looked
      return code;
    }
    AssembleJob job{source.ptx, request_.device.target(), request_.options};
    Assembled code = assemble_with(*choice.chosen, job, request_.at);
    ++counters_.assembled;
    disk_.store_code(key, code,
                     {.target = request_.device.target(),
                      .entry = source.entry,
                      .ptx_bytes = source.ptx.size(),
                      .driver_version = driver_version()});
    return code;
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

  detail::Made make(const detail::Request& request) {
    return detail::Maker(disk, counters, request).make();
  }
  Kernel fill(detail::MemoryCache& memory, const detail::Request& request);
  void verify(const detail::Request& request, const detail::LoadedKernel& kernel,
              const detail::Hash& ptx_key);
};

/// Pre: the slot of this request was claimed by this thread.
Kernel KernelCache::State::fill(detail::MemoryCache& memory, const detail::Request& request) {
  try {
    detail::Made made = make(request);
    if (options.verify_hits && made.kernel->source.ptx.empty()) {
      verify(request, *made.kernel, made.ptx_key);
    }
    Kernel kernel(request.device, made.kernel);
    std::unique_lock lock(memory.mutex);
    detail::MemoryCache::Slot* slot = memory.find(request.front_key, request.options);
    slot->kernel = std::move(made.kernel);
    slot->ptx_key = made.ptx_key;
    memory.filled.notify_all();
    return kernel;
  } catch (...) {
    std::unique_lock lock(memory.mutex);
    memory.drop(request.front_key, request.options);
    memory.filled.notify_all();
    throw;
  }
}

void KernelCache::State::verify(const detail::Request& request, const detail::LoadedKernel& kernel,
                                const detail::Hash& ptx_key) {
  ++counters.verified;
  KernelSource source = request.traced();
  const char* differs = request.ptx_key(source) != ptx_key          ? "PTX"
                        : source.entry != kernel.source.entry       ? "entry name"
                        : source.metadata != kernel.source.metadata ? "metadata"
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
  detail::Request request{device, front_key, trace, options, at};
  detail::MemoryCache& memory = *device.backend().kernels;
  detail::Ref<detail::LoadedKernel> hit;
  detail::Hash ptx_key;
  {
    std::shared_lock lock(memory.mutex);
    detail::MemoryCache::Slot* slot = memory.find(front_key, options);
    if (slot != nullptr && slot->kernel) {
      hit = slot->kernel;
      ptx_key = slot->ptx_key;
    }
  }
  if (!hit) {
    std::unique_lock lock(memory.mutex);
    for (;;) {
      detail::MemoryCache::Slot* slot = memory.find(front_key, options);
      if (slot == nullptr) {
        memory.slots[std::string(front_key)].push_back({options, {}, {}});
        break;
      }
      if (slot->kernel) {
        hit = slot->kernel;
        ptx_key = slot->ptx_key;
        break;
      }
      memory.filled.wait(lock);
    }
  }
  if (!hit) return state_->fill(memory, request);
  state_->counters.memory_hits.fetch_add(1, std::memory_order_relaxed);
  if (state_->options.verify_hits) state_->verify(request, *hit, ptx_key);
  return Kernel(device, std::move(hit));
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

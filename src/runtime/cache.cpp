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
#include <sstream>
#include <unordered_map>

namespace tilewright {
namespace detail {

/// The kernels of one device. A slot without a kernel is being filled by some thread.
struct MemoryCache {
  struct Slot {
    AssembleOptions options;
    Ref<LoadedKernel> kernel;
    std::optional<Hash> ptx_key;   ///< unknown: the kernel is from a bundle
    std::uint64_t generation = 0;  ///< of the bundles that were looked at
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
    std::optional<Hash> ptx_key;
    std::uint64_t generation = 0;
  };
  /// Without a kernel if there is none yet.
  Hit look_up(std::string_view key, const AssembleOptions& options) {
    std::shared_lock lock(mutex);
    const Slot* slot = find(key, options);
    return slot == nullptr ? Hit{} : Hit{slot->kernel, slot->ptx_key, slot->generation};
  }
  /// Waits for a thread that makes the kernel; without a kernel the slot is the caller's to fill.
  Hit wait_or_claim(std::string_view key, const AssembleOptions& options) {
    std::unique_lock lock(mutex);
    for (;;) {
      const Slot* slot = find(key, options);
      if (slot == nullptr) {
        slots[std::string(key)].push_back({options, {}, {}, 0});
        return {};
      }
      if (slot->kernel) return {slot->kernel, slot->ptx_key, slot->generation};
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
  std::atomic<std::int64_t> memory_hits{0}, bundle_hits{0}, front_hits{0}, ptx_hits{0},
      assembled{0}, waited{0}, verified{0};
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
  std::optional<Hash> ptx_key;  ///< unknown: from a bundle
};

/// The bundles of a cache, the newest first. A new one starts a generation.
class Bundles {
 public:
  void add(const Bundle& bundle) {
    std::unique_lock lock(mutex_);
    bundles_.insert(bundles_.begin(), bundle);
    generation_.fetch_add(1, std::memory_order_release);
  }
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  std::optional<BundleKernel> find(const Request& request) const {
    std::shared_lock lock(mutex_);
    for (const Bundle& bundle : bundles_) {
      std::int64_t index = bundle.find(request.front_key, request.target, request.options);
      if (index >= 0) return bundle.kernel(index, request.at);
    }
    return std::nullopt;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::vector<Bundle> bundles_;
  std::atomic<std::uint64_t> generation_{0};
};

/// The front keys that were assembled.
class CompiledKeys {
 public:
  void add(std::string_view key) {
    std::lock_guard lock(mutex_);
    keys_.emplace_back(key);
  }
  std::vector<std::string> all() const {
    std::lock_guard lock(mutex_);
    return keys_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> keys_;
};

/// What the requests of one cache share.
struct Shared {
  explicit Shared(CacheOptions with) : options(std::move(with)), disk(options) {}
  CacheOptions options;
  DiskCache disk;
  Bundles bundles;
  Counters counters;
  CompiledKeys compiled;
};

class Maker {
 public:
  Maker(Shared& shared, const Request& request)
      : shared_(shared), disk_(shared.disk), counters_(shared.counters), request_(request) {}

  Code make() {
    if (request_.kind == DeviceKind::emulated) {
      KernelSource source = request_.traced();
      Hash key = request_.ptx_key(source);
      return {{}, std::move(source), key};
    }
    if (std::optional<Code> hit = from_bundle()) return std::move(*hit);
    if (std::optional<Code> hit = from_front()) return std::move(*hit);
    KernelSource source = request_.traced();
    Hash key = request_.ptx_key(source);
    std::optional<Assembled> assembled = machine_code(source, key);
    if (!assembled) return {{}, std::move(source), key};
    disk_.store_front(request_.disk_key(), {key, source.entry, source.metadata});
    return {std::move(*assembled), std::move(source), key};
  }

 private:
  std::optional<Code> from_bundle() {
    std::optional<BundleKernel> kernel = shared_.bundles.find(request_);
    if (!kernel) return std::nullopt;
    if (request_.max_cuda != 0 &&
        cuda_version_of(kernel->assembled.assembler) / 10 > request_.max_cuda / 10) {
      disk_.warn("kernel cache: a bundle has " + kernel->entry + " from " +
                 kernel->assembled.assembler +
                 ", which is newer than the driver; it is passed over");
      return std::nullopt;
    }
    ++counters_.bundle_hits;
    KernelSource source{
        .ptx = {}, .entry = std::move(kernel->entry), .metadata = std::move(kernel->recipe)};
    return Code{std::move(kernel->assembled), std::move(source), std::nullopt};
  }

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
    if (shared_.options.compile == CompileMode::refused) refuse();
    shared_.compiled.add(request_.front_key);
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

  [[noreturn]] void refuse() const {
    throw Error(ErrorKind::unsupported,
                "kernel cache: no bundle and no entry on disk has the kernel of '" +
                    std::string(request_.front_key) + "' for " + ptx::to_string(request_.target) +
                    ", and compiling is off; add it to a bundle with 'tilewright compile', or set "
                    "TILEWRIGHT_COMPILE=on",
                request_.at);
  }

  Shared& shared_;
  DiskCache& disk_;
  Counters& counters_;
  const Request& request_;
};

}  // namespace
}  // namespace detail

struct KernelCache::State : detail::Shared {
  using Shared::Shared;

  detail::Code make(const detail::Request& request) {
    detail::Code code = detail::Maker(*this, request).make();
    bool from_front = code.source.ptx.empty();
    if (options.verify_hits && from_front && code.ptx_key) {
      verify(request, code.source.entry, code.source.metadata, *code.ptx_key);
    }
    return code;
  }
  detail::Ref<detail::LoadedKernel> load(const Device& device, const detail::Request& request,
                                         detail::Code code);
  /// The kernel of a hit that is older than the newest bundle.
  Kernel refresh(const Device& device, const detail::Request& request,
                 detail::MemoryCache::Hit hit);
  Kernel fill(const Device& device, const detail::Request& request);
  void verify(const detail::Request& request, const std::string& entry, const std::string& metadata,
              const detail::Hash& ptx_key);
};

detail::Ref<detail::LoadedKernel> KernelCache::State::load(const Device& device,
                                                           const detail::Request& request,
                                                           detail::Code code) {
  return device.backend().load({.assembled = std::move(code.assembled),
                                .ptx = std::move(code.source.ptx),
                                .entry = std::move(code.source.entry),
                                .metadata = std::move(code.source.metadata),
                                .options = request.options,
                                .front_key = std::string(request.front_key)},
                               request.at);
}

/// Pre: the slot of this request was claimed by this thread.
Kernel KernelCache::State::fill(const Device& device, const detail::Request& request) {
  detail::MemoryCache& memory = *device.backend().kernels;
  try {
    const std::uint64_t generation = bundles.generation();
    detail::Code code = make(request);
    std::optional<detail::Hash> ptx_key = code.ptx_key;
    detail::Ref<detail::LoadedKernel> loaded = load(device, request, std::move(code));
    std::unique_lock lock(memory.mutex);
    detail::MemoryCache::Slot* slot = memory.find(request.front_key, request.options);
    slot->kernel = loaded;
    slot->ptx_key = ptx_key;
    slot->generation = generation;
    memory.filled.notify_all();
    return Kernel(device, std::move(loaded));
  } catch (...) {
    std::unique_lock lock(memory.mutex);
    memory.drop(request.front_key, request.options);
    memory.filled.notify_all();
    throw;
  }
}

Kernel KernelCache::State::refresh(const Device& device, const detail::Request& request,
                                   detail::MemoryCache::Hit hit) {
  const std::uint64_t generation = bundles.generation();
  std::optional<BundleKernel> newest = bundles.find(request);
  if (newest && newest->assembled.bytes != hit.kernel->source.assembled.bytes) {
    ++counters.bundle_hits;
    detail::Code code{std::move(newest->assembled),
                      {.ptx = {}, .entry = newest->entry, .metadata = newest->recipe},
                      std::nullopt};
    hit = {load(device, request, std::move(code)), std::nullopt, generation};
  }
  detail::MemoryCache& memory = *device.backend().kernels;
  std::unique_lock lock(memory.mutex);
  // Another thread may have done the same meanwhile; either's code will do.
  if (detail::MemoryCache::Slot* slot = memory.find(request.front_key, request.options)) {
    slot->kernel = hit.kernel;
    slot->ptx_key = hit.ptx_key;
    slot->generation = generation;
  }
  return Kernel(device, std::move(hit.kernel));
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
  static KernelCache cache(CacheOptions{
      .directory = {},
      .disk = detail::environment("TILEWRIGHT_CACHE") != "off",
      .verify_hits = detail::environment("TILEWRIGHT_VERIFY_CACHE") == "1",
      .compile = detail::environment("TILEWRIGHT_COMPILE") == "off" ? CompileMode::refused
                                                                    : CompileMode::allowed});
  static const bool added = [] {
    std::istringstream paths(detail::environment("TILEWRIGHT_BUNDLES"));
    for (std::string path; std::getline(paths, path, ':');) {
      if (!path.empty()) cache.add(Bundle::open(path));
    }
    return true;
  }();
  static_cast<void>(added);
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
  if (hit.generation != state_->bundles.generation() && device.kind() == DeviceKind::cuda) {
    return state_->refresh(device, request, std::move(hit));
  }
  state_->counters.memory_hits.fetch_add(1, std::memory_order_relaxed);
  if (state_->options.verify_hits && hit.ptx_key) {
    const detail::LoadRequest& source = hit.kernel->source;
    state_->verify(request, source.entry, source.metadata, *hit.ptx_key);
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
          .bundle_hits = counters.bundle_hits,
          .front_hits = counters.front_hits,
          .ptx_hits = counters.ptx_hits,
          .assembled = counters.assembled,
          .waited = counters.waited,
          .rejected = state_->disk.rejected(),
          .verified = counters.verified};
}

void KernelCache::add(const Bundle& bundle) { state_->bundles.add(bundle); }
std::vector<std::string> KernelCache::compiled() const { return state_->compiled.all(); }
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

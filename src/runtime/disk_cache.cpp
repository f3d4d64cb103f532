// SPDX-License-Identifier: Apache-2.0
// Finds, stores and evicts cache entries.
#include "runtime/disk_cache.h"

#include "runtime/assemblers.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <sstream>

namespace tilewright::detail {
namespace {

constexpr std::string_view kFrontPrefix = "front-";
constexpr std::string_view kCodePrefix = "code-";
constexpr double kLockPatienceS = 120;  // the longest kernels assemble in seconds
constexpr std::int64_t kStaleNs =
    3'600'000'000'000;  // a temporary file this old was left by a crash

std::string front_name(const std::string& front_key) {
  return std::string(kFrontPrefix) + hex(hash_of(front_key));
}
std::string code_name(const Hash& ptx_key) { return std::string(kCodePrefix) + hex(ptx_key); }

template <typename T>
T number(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string resources_text(const std::vector<EntryResources>& resources) {
  std::ostringstream text;
  for (const EntryResources& r : resources) {
    text << r.entry << ' ' << r.registers << ' ' << r.stack_bytes << ' ' << r.spill_store_bytes
         << ' ' << r.spill_load_bytes << ' ' << r.static_smem_bytes << ' ' << r.constant_bytes
         << ' ' << r.barriers << '\n';
  }
  return text.str();
}

std::vector<EntryResources> parse_resources_text(const std::string& from) {
  std::istringstream text(from);
  std::vector<EntryResources> resources;
  EntryResources r;
  while (text >> r.entry >> r.registers >> r.stack_bytes >> r.spill_store_bytes >>
         r.spill_load_bytes >> r.static_smem_bytes >> r.constant_bytes >> r.barriers) {
    resources.push_back(r);
  }
  return resources;
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

int cuda_version_of(const std::string& assembler) {
  std::size_t space = assembler.rfind(' ');
  if (space == std::string::npos) return 0;
  std::string_view version = std::string_view(assembler).substr(space + 1);
  std::size_t dot = version.find('.');
  if (dot == std::string_view::npos) return 0;
  return number<int>(version) * 1000 + number<int>(version.substr(dot + 1)) * 10;
}

DiskCache::DiskCache(const CacheOptions& options)
    : directory_(options.directory.empty() ? default_cache_directory() : options.directory),
      max_bytes_(options.max_bytes),
      enabled_(options.disk),
      stored_since_eviction_(options.max_bytes) {}  // the first store looks at the whole directory

void DiskCache::warn(const std::string& text) {
  std::lock_guard lock(warnings_mutex_);
  if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end()) {
    warnings_.push_back(text);
  }
}

std::vector<std::string> DiskCache::warnings() const {
  std::lock_guard lock(warnings_mutex_);
  return warnings_;
}

bool DiskCache::usable() {
  std::call_once(prepared_, [this] {
    if (!enabled_) return;
    std::string problem = directory_.path().empty() ? "there is no HOME; set TILEWRIGHT_CACHE_DIR"
                                                    : directory_.prepare();
    if (problem.empty()) return;
    warn("kernel cache: " + problem + "; kernels are not kept on disk");
    enabled_ = false;
  });
  return enabled_;
}

std::optional<EntryFile> DiskCache::load(const std::string& name) {
  if (!usable()) return std::nullopt;
  PrivateDirectory::Read read = directory_.read(name, PrivateDirectory::Purpose::use);
  std::string problem = std::move(read.problem);
  if (read.bytes) {
    DecodedEntry decoded = decode_entry(*read.bytes);
    if (decoded.file) return std::move(decoded.file);
    problem = std::move(decoded.problem);
  }
  if (!problem.empty()) {
    ++rejected_;
    warn("kernel cache: " + directory_.path() + "/" + name + " " + problem + "; it is made again");
  }
  return std::nullopt;
}

void DiskCache::store(const std::string& name, const EntryFile& file) {
  if (!usable()) return;
  std::string bytes = file.encode();
  std::string problem = directory_.write(name, bytes);
  if (!problem.empty()) {
    warn("kernel cache: " + problem + "; the kernel is not kept on disk");
    return;
  }
  evict_if_due(static_cast<std::int64_t>(bytes.size()));
}

std::optional<FrontRecord> DiskCache::find_front(const std::string& front_key) {
  std::optional<EntryFile> file = load(front_name(front_key));
  // Another key with the same hash is no error, just not this kernel.
  if (!file || file->get("kind") != "front" || file->get("key") != front_key) return std::nullopt;
  return FrontRecord{
      .ptx_key = {number<std::uint64_t>(file->get("ptx_low")),
                  number<std::uint64_t>(file->get("ptx_high"))},
      .entry = file->get("entry"),
      .metadata = file->payload,
  };
}

void DiskCache::store_front(const std::string& front_key, const FrontRecord& record) {
  EntryFile file;
  file.set("kind", "front");
  file.set("key", front_key);
  file.set("ptx_low", std::to_string(record.ptx_key.low));
  file.set("ptx_high", std::to_string(record.ptx_key.high));
  file.set("entry", record.entry);
  file.payload = record.metadata;
  store(front_name(front_key), file);
}

std::optional<Assembled> DiskCache::find_code(const Hash& ptx_key, int max_cuda) {
  std::optional<EntryFile> file = load(code_name(ptx_key));
  if (!file || file->get("kind") != "code" || file->get("key") != hex(ptx_key)) return std::nullopt;
  if (max_cuda != 0 && cuda_version_of(file->get("assembler")) / 10 > max_cuda / 10) {
    return std::nullopt;
  }
  Assembled code;
  const auto* data = reinterpret_cast<const std::byte*>(file->payload.data());
  code.bytes.assign(data, data + file->payload.size());
  code.assembler = file->get("assembler");
  code.log = file->get("log");
  code.resources = parse_resources_text(file->get("resources"));
  code.assemble_ms = std::strtod(file->get("assemble_ms").c_str(), nullptr);
  return code;
}

void DiskCache::store_code(const Hash& ptx_key, const Assembled& code, const CodeFacts& facts) {
  EntryFile file;
  file.set("kind", "code");
  file.set("key", hex(ptx_key));
  file.set("target", ptx::to_string(facts.target));
  file.set("entry", facts.entry);
  file.set("assembler", code.assembler);
  file.set("driver", std::to_string(facts.driver_version));
  file.set("ptx_bytes", std::to_string(facts.ptx_bytes));
  file.set("assemble_ms", std::to_string(code.assemble_ms));
  file.set("resources", resources_text(code.resources));
  file.set("log", code.log);
  file.payload.assign(reinterpret_cast<const char*>(code.bytes.data()), code.bytes.size());
  store(code_name(ptx_key), file);
}

FileLock DiskCache::lock(const Hash& ptx_key, bool& waited) {
  waited = false;
  if (!usable()) return {};
  // 256 files serve all keys: two keys that share one are assembled one after the other.
  PrivateDirectory::Locked locked =
      directory_.lock("lock-" + hex(ptx_key).substr(0, 2), kLockPatienceS);
  waited = locked.waited;
  if (!locked.problem.empty()) {
    warn("kernel cache: " + locked.problem + "; the kernel may be assembled twice");
  }
  return std::move(locked.lock);
}

void DiskCache::evict_if_due(std::int64_t stored_bytes) {
  if (stored_since_eviction_.fetch_add(stored_bytes) + stored_bytes <= max_bytes_ / 16) return;
  stored_since_eviction_ = 0;
  evict();
}

void DiskCache::evict() {
  std::vector<PrivateDirectory::File> kept;
  std::int64_t total_bytes = 0;
  for (PrivateDirectory::File& file : directory_.files()) {
    if (file.name.starts_with(kTemporaryPrefix) && now_ns() - file.modified_ns > kStaleNs) {
      directory_.remove(file.name);
    } else if (file.name.starts_with(kFrontPrefix) || file.name.starts_with(kCodePrefix)) {
      total_bytes += file.size_bytes;
      kept.push_back(std::move(file));
    }
  }
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
    return std::tie(a.modified_ns, a.name) < std::tie(b.modified_ns, b.name);
  });
  for (const PrivateDirectory::File& file : kept) {
    if (total_bytes <= max_bytes_) return;
    if (directory_.remove(file.name)) total_bytes -= file.size_bytes;
  }
}

std::vector<CacheEntry> DiskCache::entries(Check check) {
  std::vector<CacheEntry> found;
  if (!usable()) return found;
  for (const PrivateDirectory::File& file : directory_.files()) {
    bool is_code = file.name.starts_with(kCodePrefix);
    if (!is_code && !(check == Check::all_bytes && file.name.starts_with(kFrontPrefix))) continue;
    PrivateDirectory::Read read = directory_.read(file.name, PrivateDirectory::Purpose::inspect);
    DecodedEntry decoded;
    if (read.bytes) decoded = decode_entry(*read.bytes);
    CacheEntry entry{.file = file.name,
                     .size_bytes = file.size_bytes,
                     .modified_s = file.modified_ns / 1'000'000'000,
                     .target = {},
                     .assembler = {},
                     .entry = {},
                     .problem = read.bytes ? decoded.problem : read.problem};
    if (decoded.file) {
      entry.target = decoded.file->get("target");
      entry.assembler = decoded.file->get("assembler");
      entry.entry = decoded.file->get("entry");
    }
    if (is_code || !entry.problem.empty()) found.push_back(std::move(entry));
  }
  std::sort(found.begin(), found.end(),
            [](const CacheEntry& a, const CacheEntry& b) { return a.file < b.file; });
  return found;
}

std::int64_t DiskCache::clear() {
  std::int64_t removed = 0;
  if (!usable()) return removed;
  for (const PrivateDirectory::File& file : directory_.files()) {
    bool is_code = file.name.starts_with(kCodePrefix);
    bool ours =
        is_code || file.name.starts_with(kFrontPrefix) || file.name.starts_with(kTemporaryPrefix);
    if (ours && directory_.remove(file.name) && is_code) ++removed;
  }
  return removed;
}

}  // namespace tilewright::detail

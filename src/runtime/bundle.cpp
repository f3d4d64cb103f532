// SPDX-License-Identifier: Apache-2.0
// Reads bundles with the code that tilewright_bundle.h gives to C programs.
#include "tilewright/bundle.h"

#include "runtime/backend.h"
#include "runtime/bundle_hash.h"

#include <unordered_map>

// The header is C: its casts and its functions that are not used here are as they have to be.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wunused-function"
#define TW_BUNDLE_API static
#define TILEWRIGHT_BUNDLE_IMPLEMENTATION
#include "tilewright_bundle.h"
#pragma GCC diagnostic pop

namespace tilewright {
namespace detail {

struct BundleFile : Counted {
  ~BundleFile() { tw_bundle_close(bundle); }
  std::string path;
  tw_bundle* bundle = nullptr;
  std::unordered_map<std::string, std::int64_t> by_key;  ///< front key, target and options
};

void retain(BundleFile* file) noexcept { file->owners.fetch_add(1, std::memory_order_relaxed); }
void release(BundleFile* file) noexcept {
  if (file->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete file;
}

std::uint64_t bundle_hash(std::span<const std::byte> bytes) {
  return tw_bundle_hash(bytes.data(), bytes.size());
}

namespace {

std::string key_of(std::string_view front_key, std::string_view target, std::string_view options) {
  std::string key(front_key);
  return (key += '\0').append(target).append(1, '\0').append(options);
}

std::string_view text_at(const tw_bundle& bundle, tw_bundle_text text) {
  return {reinterpret_cast<const char*>(bundle.bytes) + text.at, text.bytes};
}

Dim3 extents(const std::uint32_t (&from)[3]) {
  return {static_cast<int>(from[0]), static_cast<int>(from[1]), static_cast<int>(from[2])};
}

EntryResources resources_of(const tw_bundle_kernel& kernel) {
  const tw_bundle_record& record = *kernel.record;
  return {.entry = kernel.entry,
          .registers = static_cast<int>(record.registers),
          .stack_bytes = static_cast<int>(record.stack_bytes),
          .spill_store_bytes = static_cast<int>(record.spill_store_bytes),
          .spill_load_bytes = static_cast<int>(record.spill_load_bytes),
          .static_smem_bytes = static_cast<int>(record.static_smem_bytes),
          .constant_bytes = 0,
          .barriers = 0};
}

}  // namespace
}  // namespace detail

Bundle Bundle::open(const std::string& path, SourceLoc at) {
  detail::Ref<detail::BundleFile> file(new detail::BundleFile);
  file->path = path;
  if (tw_bundle_open(path.c_str(), &file->bundle) != TW_BUNDLE_OK) {
    throw Error(ErrorKind::user, std::string("bundle: ") + tw_bundle_message(), at);
  }
  TW_ASSERT(file->bundle != nullptr, "tw_bundle_open() gives a bundle or says what is wrong");
  const tw_bundle& bundle = *file->bundle;
  for (std::size_t i = 0; i < bundle.count; ++i) {
    const tw_bundle_record& record = tw_bundle_records(&bundle)[i];
    file->by_key.emplace(detail::key_of(detail::text_at(bundle, record.front_key),
                                        detail::text_at(bundle, record.target),
                                        detail::text_at(bundle, record.options)),
                         static_cast<std::int64_t>(i));
  }
  return Bundle(std::move(file));
}

const std::string& Bundle::path() const { return file_->path; }
std::int64_t Bundle::size() const { return static_cast<std::int64_t>(file_->bundle->count); }

std::int64_t Bundle::find(std::string_view front_key, ptx::Target target,
                          const AssembleOptions& options) const {
  auto found = file_->by_key.find(
      detail::key_of(front_key, ptx::to_string(target), canonical_text(options)));
  return found == file_->by_key.end() ? -1 : found->second;
}

BundleKernel Bundle::kernel(std::int64_t index, SourceLoc at) const {
  tw_bundle_kernel kernel{};
  if (tw_bundle_at(file_->bundle, static_cast<std::size_t>(index), &kernel) != TW_BUNDLE_OK) {
    throw Error(ErrorKind::user, "bundle: " + file_->path + " " + tw_bundle_message(), at);
  }
  TW_ASSERT(kernel.record != nullptr, "tw_bundle_at() gives a kernel or says what is wrong");
  const tw_bundle_record& record = *kernel.record;
  const auto* code = static_cast<const std::byte*>(kernel.code);
  return {.front_key = kernel.front_key,
          .entry = kernel.entry,
          .target = ptx::parse_target(kernel.target, at),
          .options = kernel.options,
          .recipe = kernel.recipe,
          .problem = kernel.problem,
          .assembled = {.bytes = {code, code + kernel.code_bytes},
                        .assembler = kernel.assembler,
                        .log = {},
                        .resources = {detail::resources_of(kernel)},
                        .assemble_ms = 0},
          .launch = {.grid = detail::extents(record.grid),
                     .block = detail::extents(record.block),
                     .cluster = detail::extents(record.cluster),
                     .dynamic_smem_bytes = static_cast<std::int64_t>(record.dynamic_smem_bytes),
                     .cooperative = (record.flags & TW_BUNDLE_COOPERATIVE) != 0,
                     .dependent = (record.flags & TW_BUNDLE_DEPENDENT) != 0},
          .parameter_bytes = record.parameter_bytes};
}

}  // namespace tilewright

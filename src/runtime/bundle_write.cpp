// SPDX-License-Identifier: Apache-2.0
// Writes bundles: a head, records and texts, then the machine code of each kernel.
#include "base/file.h"
#include "runtime/bundle_hash.h"
#include "tilewright/bundle.h"
#include "tilewright_bundle.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>

namespace tilewright {
namespace {

constexpr std::size_t kCodeAlignment = 64;

std::size_t aligned(std::size_t at) {
  return (at + kCodeAlignment - 1) / kCodeAlignment * kCodeAlignment;
}

/// Texts behind the records; places count from the start of the file.
class Texts {
 public:
  explicit Texts(std::size_t begin) : begin_(begin) {}
  tw_bundle_text add(const std::string& text) {
    tw_bundle_text place{static_cast<std::uint32_t>(begin_ + bytes_.size()),
                         static_cast<std::uint32_t>(text.size())};
    bytes_.append(text).append(1, '\0');
    return place;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::size_t begin_;
  std::string bytes_;
};

void set_extents(std::uint32_t (&to)[3], const Dim3& from) {
  to[0] = static_cast<std::uint32_t>(from.x);
  to[1] = static_cast<std::uint32_t>(from.y);
  to[2] = static_cast<std::uint32_t>(from.z);
}

void set_resources(tw_bundle_record& record, const BundleKernel& kernel) {
  for (const EntryResources& resources : kernel.assembled.resources) {
    if (resources.entry != kernel.entry) continue;
    record.registers = static_cast<std::uint32_t>(resources.registers);
    record.stack_bytes = static_cast<std::uint32_t>(resources.stack_bytes);
    record.spill_store_bytes = static_cast<std::uint32_t>(resources.spill_store_bytes);
    record.spill_load_bytes = static_cast<std::uint32_t>(resources.spill_load_bytes);
    record.static_smem_bytes = static_cast<std::uint32_t>(resources.static_smem_bytes);
  }
}

tw_bundle_record record_of(const BundleKernel& kernel, Texts& texts) {
  tw_bundle_record record{};
  record.front_key = texts.add(kernel.front_key);
  record.entry = texts.add(kernel.entry);
  record.target = texts.add(ptx::to_string(kernel.target));
  record.options = texts.add(kernel.options);
  record.recipe = texts.add(kernel.recipe);
  record.problem = texts.add(kernel.problem);
  record.assembler = texts.add(kernel.assembled.assembler);
  record.code_bytes = kernel.assembled.bytes.size();
  record.code_hash = detail::bundle_hash(kernel.assembled.bytes);
  set_extents(record.grid, kernel.launch.grid);
  set_extents(record.block, kernel.launch.block);
  set_extents(record.cluster, kernel.launch.cluster);
  record.dynamic_smem_bytes = static_cast<std::uint64_t>(kernel.launch.dynamic_smem_bytes);
  if (kernel.launch.cooperative) record.flags |= TW_BUNDLE_COOPERATIVE;
  if (kernel.launch.dependent) record.flags |= TW_BUNDLE_DEPENDENT;
  record.parameter_bytes = static_cast<std::uint32_t>(kernel.parameter_bytes);
  set_resources(record, kernel);
  return record;
}

/// One of each key, in the order of keys: the same kernels give the same file.
std::vector<const BundleKernel*> sorted(std::span<const BundleKernel> kernels) {
  auto key = [](const BundleKernel* kernel) {
    return std::tie(kernel->front_key, kernel->target, kernel->options);
  };
  std::vector<const BundleKernel*> order;
  for (const BundleKernel& kernel : kernels)
    order.push_back(&kernel);
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return key(a) < key(b); });
  auto end = std::unique(order.begin(), order.end(),
                         [&](const auto* a, const auto* b) { return key(a) == key(b); });
  order.erase(end, order.end());
  return order;
}

template <typename T>
void append(std::vector<std::byte>& to, std::span<const T> values) {
  std::span<const std::byte> bytes = std::as_bytes(values);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

void write_bundle(const std::string& path, std::span<const BundleKernel> kernels, SourceLoc at) {
  const std::vector<const BundleKernel*> order = sorted(kernels);
  Texts texts(sizeof(tw_bundle_head) + order.size() * sizeof(tw_bundle_record));
  std::vector<tw_bundle_record> records;
  for (const BundleKernel* kernel : order) {
    if (kernel->assembled.bytes.empty()) {
      throw Error(ErrorKind::user,
                  "write_bundle: " + kernel->entry + " has no machine code; assemble it first", at);
    }
    records.push_back(record_of(*kernel, texts));
  }
  const std::size_t index_bytes = records.size() * sizeof(tw_bundle_record) + texts.bytes().size();
  std::size_t end = sizeof(tw_bundle_head) + index_bytes;
  if (end > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorKind::user, "write_bundle: the texts of the kernels take over 4 GiB", at);
  }
  for (tw_bundle_record& record : records) {
    record.code_at = aligned(end);
    end = record.code_at + record.code_bytes;
  }
  std::vector<std::byte> index;
  append(index, std::span<const tw_bundle_record>(records));
  append(index, std::span<const char>(texts.bytes()));
  tw_bundle_head head{};
  std::memcpy(head.magic, TW_BUNDLE_MAGIC, sizeof head.magic);
  head.format = TW_BUNDLE_FORMAT;
  head.count = static_cast<std::uint32_t>(records.size());
  head.file_bytes = end;
  head.index_bytes = index_bytes;
  head.index_hash = detail::bundle_hash(index);
  std::vector<std::byte> file;
  file.reserve(end);
  append(file, std::span<const tw_bundle_head>(&head, 1));
  append(file, std::span<const std::byte>(index));
  for (std::size_t i = 0; i < order.size(); ++i) {
    file.resize(records[i].code_at);
    append(file, std::span<const std::byte>(order[i]->assembled.bytes));
  }
  const std::span<const std::byte> chunk(file);
  io::write_file(path, {&chunk, 1});
}

}  // namespace tilewright

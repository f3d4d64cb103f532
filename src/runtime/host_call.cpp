// SPDX-License-Identifier: Apache-2.0
// Host memory that a call touches, as regions with a copy on the device.
#include "runtime/host_call.h"

#include "tilewright/buffer.h"
#include "tilewright/emulator.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <optional>

namespace tilewright::detail {
namespace {

// The widest access of a thread: a region keeps its address modulo it, and no more, so that what a
// kernel may assume does not change from run to run.
constexpr std::uint64_t kAlignment = 16;

/// Host bytes that one or more overlapping tensors touch.
struct Region {
  ByteRange host;
  bool read = false;     ///< has contents that matter
  bool written = false;  ///< has outputs
  std::optional<Buffer> copy{};
  std::uint64_t offset() const { return host.begin % kAlignment; }
};

std::span<std::byte> host_bytes(const Region& region) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the address of host memory that a View holds
  return {reinterpret_cast<std::byte*>(region.host.begin),
          static_cast<std::size_t>(region.host.end - region.host.begin)};
}

/// Tensors in place of one another must be so on the device, too: ranges that overlap are one
/// region.
std::vector<Region> regions_of(std::span<const HostTensor> tensors) {
  std::vector<Region> all;
  for (const HostTensor& tensor : tensors) {
    const ByteRange range = byte_range(tensor.view);
    if (range.begin == range.end) continue;
    all.push_back({range, tensor.role != Role::output, tensor.role != Role::input});
  }
  std::sort(all.begin(), all.end(),
            [](const Region& a, const Region& b) { return a.host.begin < b.host.begin; });
  std::vector<Region> merged;
  for (Region& region : all) {
    if (merged.empty() || region.host.begin >= merged.back().host.end) {
      merged.push_back(std::move(region));
      continue;
    }
    Region& last = merged.back();
    last.host.end = std::max(last.host.end, region.host.end);
    last.read |= region.read;
    last.written |= region.written;
  }
  return merged;
}

/// Outputs, too: what a kernel leaves alone, and what lies between rows, is as it was. That it
/// reads none of it is for the emulator to see.
void copy_in(const Device& device, std::vector<Region>& regions) {
  for (Region& region : regions) {
    const auto bytes = static_cast<std::int64_t>(host_bytes(region).size());
    const auto offset = static_cast<std::int64_t>(region.offset());
    region.copy.emplace(device, bytes + offset);
    region.copy->upload(host_bytes(region), offset);
    if (region.read || device.kind() != DeviceKind::emulated) continue;
    device.emulator().forget(region.copy->address() + region.offset(), bytes);
  }
}

void copy_out(const std::vector<Region>& regions) {
  for (const Region& region : regions) {
    if (!region.written) continue;
    region.copy->download(host_bytes(region), static_cast<std::int64_t>(region.offset()));
  }
}

View on_device(const View& view, const std::vector<Region>& regions) {
  const ByteRange range = byte_range(view);
  View moved = view;
  for (const Region& region : regions) {
    if (range.begin < region.host.begin || range.begin >= region.host.end) continue;
    moved.address = region.copy->address() + region.offset() + (view.address - region.host.begin);
  }
  return moved;
}

}  // namespace

std::vector<emu::Diagnostic> run_on_copies(const Device& device, const Operator& op,
                                           Arguments arguments,
                                           std::span<const HostTensor> tensors) {
  std::vector<Region> regions = regions_of(tensors);
  copy_in(device, regions);
  for (const HostTensor& tensor : tensors)
    arguments.set(tensor.name, on_device(tensor.view, regions), SourceLoc{});
  const std::int64_t needed = op.workspace_bytes == nullptr ? 0 : op.workspace_bytes(arguments);
  const Buffer workspace(device, needed);
  if (needed > 0) workspace.fill(std::byte{0});
  arguments.set_workspace({workspace.address(), needed});
  device.take_findings();
  op.launch(device, Stream::default_of(device), arguments);
  copy_out(regions);
  std::vector<emu::Diagnostic> found = device.take_findings();
  std::erase_if(found, [](const auto& each) { return each.severity == emu::Severity::advice; });
  return found;
}

}  // namespace tilewright::detail

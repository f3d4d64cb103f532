// SPDX-License-Identifier: Apache-2.0
// Checks launches against what the hardware allows and prepares their grids.
#include "emu/launch.h"

#include <algorithm>

namespace tilewright::emu::detail {

namespace {

[[noreturn]] void fail(const Launch& launch, const std::string& message) {
  throw Error(ErrorKind::user, "launch of " + launch.entry + ": " + message);
}

void check_shape(const Launch& l, const FunctionCode& fc, ptx::Target target) {
  const Dim3 b = l.block;
  if (b.count() == 0 || b.x > 1024 || b.y > 1024 || b.z > 64 || b.count() > 1024) {
    fail(l, "block " + to_string(b) + " is impossible; use 1 to 1024 threads, at most 64 in z");
  }
  const Dim3 g = l.grid;
  if (g.count() == 0 || g.x > 0x7fffffff || g.y > 65535 || g.z > 65535) {
    fail(l, "grid " + to_string(g) + " is impossible; y and z are at most 65535, none is 0");
  }
  const ptx::Tuning& t = fc.source->tuning;
  if (t.reqntid[0] != 0) {
    auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(std::max(t.reqntid[i], 1)); };
    const Dim3 want{at(0), at(1), at(2)};
    if (!(want == b)) {
      fail(l, "block " + to_string(b) + " differs from its .reqntid " + to_string(want));
    }
  }
  if (t.maxntid[0] != 0) {
    std::uint64_t most = 1;
    for (const int n : t.maxntid)
      most *= static_cast<std::uint64_t>(std::max(n, 1));
    if (b.count() > most) {
      fail(l, "block " + to_string(b) + " has more threads than its .maxntid of " +
                  std::to_string(most));
    }
  }
  const Dim3 c = l.cluster;
  if (c.count() > 1 && target.sm < 90) fail(l, "clusters need sm_90");
  if (c.count() == 0 || c.count() > 16 || g.x % c.x != 0 || g.y % c.y != 0 || g.z % c.z != 0) {
    fail(l, "cluster " + to_string(c) + " must have 1 to 16 blocks and divide the grid " +
                to_string(g));
  }
}

Dim3 required_cluster(const Launch& l, const FunctionCode& fc) {
  const auto& want = fc.source->tuning.reqnctapercluster;
  if (want[0] == 0) return l.cluster;
  auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(std::max(want[i], 1)); };
  const Dim3 d{at(0), at(1), at(2)};
  if (l.cluster.count() > 1 && !(l.cluster == d)) {
    fail(l, "cluster " + to_string(l.cluster) + " differs from its .reqnctapercluster " +
                to_string(d));
  }
  return d;
}

void check_shared(Grid& grid, const HardwareLimits& limits) {
  const Launch& l = grid.launch;
  if (l.dynamic_smem_bytes < 0) fail(l, "negative dynamic shared memory");
  const SharedLayout& layout = grid.entry->shared;
  const bool dynamic = l.dynamic_smem_bytes > 0;
  grid.declared_shared_bytes =
      dynamic ? layout.dynamic_bytes_before + l.dynamic_smem_bytes : layout.bytes;
  if (grid.declared_shared_bytes > limits.shared_bytes_block) {
    fail(l, std::to_string(grid.declared_shared_bytes) +
                " bytes of shared memory; the target has " +
                std::to_string(limits.shared_bytes_block));
  }
  grid.dynamic_offset = static_cast<std::uint32_t>(layout.dynamic_at);
  grid.shared_bytes = dynamic ? layout.dynamic_at + l.dynamic_smem_bytes : layout.end;
}

void set_capacity(Grid& grid, const HardwareLimits& limits) {
  const std::uint64_t cluster = grid.launch.cluster.count();
  const std::uint32_t threads = (grid.threads() + 31) / 32 * 32;
  std::int64_t per_sm = std::min<std::int64_t>(limits.blocks_sm, limits.threads_sm / threads);
  per_sm = std::min(per_sm, limits.shared_bytes_sm / (grid.declared_shared_bytes + kSharedBase));
  const std::uint64_t fit = static_cast<std::uint64_t>(std::max<std::int64_t>(per_sm, 1)) *
                            static_cast<std::uint64_t>(grid.device->options.multiprocessors);
  if (grid.launch.cooperative && fit < grid.blocks) {
    fail(grid.launch, "cooperative, but only " + std::to_string(fit) + " of " +
                          std::to_string(grid.blocks) + " blocks fit on the device");
  }
  // More blocks than this in flight only cost memory: hardware has no such number.
  constexpr std::uint64_t kMost = 4096;
  std::uint64_t capacity = std::min(grid.blocks, kMost);
  if (!grid.launch.cooperative) {
    switch (grid.options.residency) {
      case Residency::all:
        break;
      case Residency::estimate:
        capacity = std::min(capacity, fit);
        break;
      case Residency::one:
        capacity = 1;
        break;
    }
  }
  const std::uint64_t window = grid.options.residency == Residency::all ? capacity : 8;
  grid.capacity = static_cast<std::uint32_t>(std::max(capacity, cluster));
  grid.window = static_cast<std::uint32_t>(std::max(std::min(window, capacity), cluster));
}

void number_blocks(Grid& grid, Memory& memory) {
  const auto count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(grid.blocks, Record::kBlockLimit - 1));
  if (memory.next_block + std::uint64_t{count} > Record::kBlockLimit) memory.forget_accesses();
  grid.first_number = memory.next_block;
  memory.next_block += count;
}

}  // namespace

HardwareLimits hardware_limits(ptx::Target target) {
  // CUDA Programming Guide, compute capabilities: shared memory a block can have and an SM has.
  const int sm = target.sm;
  if (sm == 80 || sm == 87) return {108, 166'912, 167'936, 2048, 32};
  if (sm == 86 || sm == 89) return {84, 101'376, 102'400, 1536, 24};
  if (sm >= 120) return {170, 101'376, 102'400, 1536, 24};
  if (sm >= 90) return {sm >= 100 ? 148 : 132, 232'448, 233'472, 2048, 32};
  return {72, 98'304, 98'304, 2048, 32};
}

void check_target(const ptx::Module& module, ptx::Target machine) {
  const ptx::Target t = module.target;
  const bool fits = t.suffix == 'a'   ? t.sm == machine.sm
                    : t.suffix == 'f' ? t.sm / 10 == machine.sm / 10 && t.sm <= machine.sm
                                      : t.sm <= machine.sm;
  if (!fits) {
    throw Error(ErrorKind::unsupported,
                "the module's target " + ptx::to_string(t) + " does not run on the emulated " +
                    ptx::to_string(machine) + "; open a device of the module's target");
  }
  if (module.address_size != 64) {
    throw Error(ErrorKind::unsupported, "the module has 32-bit addresses; use .address_size 64");
  }
}

const FunctionCode& find_entry(const Code& code, std::string_view name) {
  auto it = code.function_index.find(name);
  if (it != code.function_index.end() && code.functions[it->second].source->entry) {
    return code.functions[it->second];
  }
  std::string known;
  for (const auto& f : code.functions) {
    if (f.source->entry) known += (known.empty() ? "" : ", ") + f.name;
  }
  throw Error(ErrorKind::user, "the module has no entry '" + std::string(name) + "'; it has " +
                                   (known.empty() ? std::string("none") : known));
}

std::unique_ptr<Grid> prepare(Run& run, Device& device, const Launch& launch,
                              const Options& options) {
  if (launch.program.code == nullptr) fail(launch, "no program is loaded");
  auto grid = std::make_unique<Grid>();
  grid->run = &run;
  grid->index = static_cast<std::uint32_t>(run.grids.size());
  grid->device = &device;
  grid->code = launch.program.code;
  grid->entry = &find_entry(*grid->code, launch.entry);
  grid->launch = launch;
  grid->options = options;
  grid->params = launch.params;
  if (static_cast<std::int64_t>(launch.params.size()) != grid->entry->param_bytes) {
    fail(launch, "its parameters have " + std::to_string(grid->entry->param_bytes) +
                     " bytes, not " + std::to_string(launch.params.size()));
  }
  grid->launch.cluster = required_cluster(launch, *grid->entry);
  check_shape(grid->launch, *grid->entry, device.target);
  grid->blocks = launch.grid.count();
  const HardwareLimits limits = hardware_limits(device.target);
  check_shared(*grid, limits);
  set_capacity(*grid, limits);
  number_blocks(*grid, *device.memory);
  if (options.counters == Counting::on) grid->counts.resize(grid->code->insts.size());
  if (launch.cooperative) {
    Allocation& w = device.memory->allocate(4096, "cooperative workspace", device.index);
    device.memory->fill(w, w.base, 4096, 0, 1);
    grid->workspace = w.base;
  }
  return grid;
}

}  // namespace tilewright::emu::detail

// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as PTX whose first entry runs on small grids, with limits on everything.
#include "tilewright/emulator.h"
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace {

using namespace tilewright;

/// Pointers to 4 KiB of words for parameters of 8 bytes, small numbers for others.
std::vector<std::byte> parameters_for(emu::Machine& machine, const emu::Program& program,
                                      const std::string& entry) {
  std::vector<std::byte> params;
  std::uint32_t number = 3;
  for (const emu::ParamSlot& slot : emu::parameters(program, entry)) {
    params.resize(static_cast<std::size_t>(slot.offset + slot.bytes));
    if (slot.bytes == 8) {
      const std::uint64_t address = machine.allocate(4096);
      machine.fill(address, 4096, number, 4);
      std::memcpy(params.data() + slot.offset, &address, 8);
    } else {
      std::memcpy(params.data() + slot.offset, &number,
                  static_cast<std::size_t>(std::min<std::int64_t>(slot.bytes, 4)));
    }
    ++number;
  }
  return params;
}

void run(const ptx::Module& module, const std::string& entry, std::uint64_t seed) {
  emu::Machine machine(module.target);
  emu::Launch launch;
  launch.program = machine.load(module);
  launch.entry = entry;
  launch.grid.x = 2;
  launch.block.x = seed % 2 == 0 ? 64 : 33;
  launch.dynamic_smem_bytes = 1024;
  launch.params = parameters_for(machine, launch.program, entry);
  emu::Options options;
  options.seed = seed;
  options.delivery = static_cast<emu::Delivery>(seed % 3);
  options.divergence = static_cast<emu::Divergence>(seed / 3 % 3);
  options.residency = static_cast<emu::Residency>(seed / 9 % 3);
  options.counters = emu::Counting::on;
  options.limits = {.memory_bytes = 1 << 24,
                    .steps = 20'000,
                    .idle_steps = 2'000,
                    .output_bytes = 1 << 12,
                    .findings = 8};
  const emu::LaunchReport report = machine.launch(launch, options);
  for (const emu::Diagnostic& finding : report.findings)
    if (emu::to_string(finding).empty()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::uint64_t seed = size;
  for (const std::uint8_t byte : std::span(data, std::min<std::size_t>(size, 64)))
    seed = seed * 31 + byte;
  try {
    const ptx::Module module = ptx::parse(text, "fuzz.ptx");
    for (const ptx::Function& function : module.functions) {
      if (function.entry && !function.declaration) run(module, function.name, seed % 27);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) __builtin_trap();
  }
  return 0;
}

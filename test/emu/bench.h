// SPDX-License-Identifier: Apache-2.0
// Runs a few lines of PTX as a kernel: what the emulator's tests are written with.
#pragma once

#include "tilewright/emulator.h"
#include "tilewright/module.h"

#include <cstring>
#include <string>
#include <vector>

namespace tilewright::emu::test {

struct Kernel {
  std::string body;                        ///< behind the loads of parameters
  std::string shared = {};                 ///< declarations in front of it
  std::vector<std::int64_t> buffers = {};  ///< bytes, zeroed; %rd0, %rd1, ... are their addresses
  Dim3 grid{}, block{32, 1, 1}, cluster{};
  bool written = true;         ///< buffers are filled with zeros; else uninitialised
  std::string functions = {};  ///< declarations in front of the entry
  std::int64_t dynamic_smem_bytes = 0;
};

struct Outcome {
  LaunchReport report;
  std::vector<std::vector<std::uint32_t>> words;  ///< the buffers afterwards

  std::string text() const {
    std::string out;
    for (const Diagnostic& d : report.findings)
      out += to_string(d) + "\n";
    return out;
  }
  /// Kinds in order, each once: "race, out_of_bounds".
  std::string kinds() const {
    std::string out;
    for (const Diagnostic& d : report.findings) {
      const std::string kind(name(d.kind));
      if (out.find(kind) == std::string::npos) out += (out.empty() ? "" : ", ") + kind;
    }
    return out;
  }
};

/// Registers %r0.., %rd0.., %f0.., %fd0.., %h0.., %p0.. (32 of each; %rd from 16 on are free), and
/// %tid in %r0, %ctaid in %r1.
inline std::string ptx_text(const Kernel& k) {
  std::string text = ".version 8.7\n.target sm_90a\n.address_size 64\n" + k.functions +
                     "\n.visible .entry kernel(";
  for (std::size_t i = 0; i < k.buffers.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::string(".param .u64 p") + std::to_string(i);
  }
  text +=
      ")\n{\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n.reg .f32 %f<64>;\n.reg .f64 %fd<32>;\n"
      ".reg .b16 %h<32>;\n.reg .pred %p<32>;\n" +
      k.shared + "\n";
  for (std::size_t i = 0; i < k.buffers.size(); ++i) {
    text += "ld.param.u64 %rd" + std::to_string(i) + ", [p" + std::to_string(i) + "];\n";
  }
  return text + "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n" + k.body + "\nret;\n}\n";
}

inline Outcome run(const Kernel& k, const Options& options = {},
                   const std::vector<std::vector<std::uint32_t>>& contents = {}) {
  Machine machine(ptx::parse_target("sm_90a"));
  Launch launch;
  launch.program = machine.load(ptx::parse(ptx_text(k), "test.ptx"));
  launch.entry = "kernel";
  launch.grid = k.grid;
  launch.block = k.block;
  launch.cluster = k.cluster;
  launch.dynamic_smem_bytes = k.dynamic_smem_bytes;
  std::vector<std::uint64_t> addresses;
  for (std::size_t i = 0; i < k.buffers.size(); ++i) {
    addresses.push_back(machine.allocate(k.buffers[i]));
    if (k.written) machine.fill(addresses.back(), k.buffers[i], 0);
    if (i < contents.size()) machine.write(addresses[i], std::as_bytes(std::span(contents[i])));
    launch.params.resize(launch.params.size() + 8);
    std::memcpy(launch.params.data() + launch.params.size() - 8, &addresses[i], 8);
  }
  Outcome out;
  out.report = machine.launch(launch, options);
  for (std::size_t i = 0; i < k.buffers.size(); ++i) {
    std::vector<std::uint32_t> words(static_cast<std::size_t>(k.buffers[i]) / 4);
    machine.read(addresses[i], std::as_writable_bytes(std::span(words)));
    out.words.push_back(std::move(words));
  }
  return out;
}

}  // namespace tilewright::emu::test

// SPDX-License-Identifier: Apache-2.0
// Runs entries of stored PTX, each `(const int* x, int* out)`, in all schedule modes.
#pragma once

#include "tilewright/emulator.h"
#include "tilewright/module.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <list>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::emu::test {

using Ints = std::vector<std::int32_t>;

struct ProgramRow {
  std::string entry;
  std::uint32_t grid = 1, block = 32, cluster = 1;
  Ints (*expected)(const Ints& x) = nullptr;  ///< what `out` begins with afterwards
  bool cooperative = false;
  std::int64_t dynamic_smem_bytes = 0;
  std::uint32_t block_y = 1;
};
inline std::ostream& operator<<(std::ostream& out, const ProgramRow& row) {
  return out << row.entry;
}

template <class F>
Ints table(int count, F value) {
  Ints out;
  for (int i = 0; i < count; ++i)
    out.push_back(value(i));
  return out;
}
inline std::int32_t at(const Ints& x, int i) { return x[static_cast<std::size_t>(i)]; }

/// What every program is given.
inline Ints program_input() {
  return table(1024, [](int i) { return (i * 7919 + 13) % 1009; });
}

/// A module of test/data, read once.
inline const ptx::Module& module_of(const std::string& file) {
  static std::list<std::pair<std::string, ptx::Module>> read;
  for (const auto& [name, module] : read) {
    if (name == file) return module;
  }
  std::ifstream in(std::string(TILEWRIGHT_SOURCE_DIR) + "/test/data/" + file);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return read.emplace_back(file, ptx::parse(text, file)).second;
}

inline std::string schedule_text(const Options& o) {
  return "seed " + std::to_string(o.seed) + ", " + std::string(name(o.residency)) + ", " +
         std::string(name(o.delivery)) + ", " + std::string(name(o.divergence));
}

inline void expect_clean(const LaunchReport& report, const Options& o) {
  for (const Diagnostic& d : report.findings) {
    if (d.severity != Severity::advice) ADD_FAILURE() << schedule_text(o) << ": " << to_string(d);
  }
  EXPECT_TRUE(report.completed) << schedule_text(o);
}

/// All modes, each with a seed of its own.
inline std::vector<Options> schedules() {
  std::vector<Options> out;
  for (unsigned i = 0; i < 27; ++i) {
    Options o;
    o.seed = i;
    o.residency = static_cast<Residency>(i % 3);
    o.delivery = static_cast<Delivery>(i / 3 % 3);
    o.divergence = static_cast<Divergence>(i / 9);
    out.push_back(o);
  }
  return out;
}

struct ProgramRun {
  LaunchReport report;
  Ints out;
};

inline ProgramRun run_program(const ProgramRow& row, const std::string& file, const Options& o) {
  const Ints x = program_input();
  const ptx::Module& module = module_of(file);
  Machine machine(module.target);
  Launch launch;
  launch.program = machine.load(module);
  launch.entry = row.entry;
  launch.grid.x = row.grid;
  launch.block = {row.block, row.block_y, 1};
  launch.cluster.x = row.cluster;
  launch.cooperative = row.cooperative;
  launch.dynamic_smem_bytes = row.dynamic_smem_bytes;
  const std::uint64_t buffers[2] = {machine.allocate(4096, "x"), machine.allocate(8192, "out")};
  machine.write(buffers[0], std::as_bytes(std::span(x)));
  machine.fill(buffers[1], 8192, 0);
  launch.params.resize(16);
  std::memcpy(launch.params.data(), buffers, 16);
  ProgramRun run{machine.launch(launch, o), Ints(2048)};
  machine.read(buffers[1], std::as_writable_bytes(std::span(run.out)));
  return run;
}

inline void expect_program(const ProgramRow& row, const std::string& file) {
  const Ints expected = row.expected(program_input());
  for (const Options& o : schedules()) {
    ProgramRun run = run_program(row, file, o);
    expect_clean(run.report, o);
    run.out.resize(expected.size());
    EXPECT_EQ(run.out, expected) << schedule_text(o);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace tilewright::emu::test

// SPDX-License-Identifier: Apache-2.0
// The planted defects of the corpus: each is reported by its kind, first, whatever the schedule.
#include "tilewright/emulator.h"
#include "tilewright/module.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace tilewright::emu {
namespace {

struct Bug {
  std::string entry;
  std::uint32_t grid = 1, block = 32;
  std::vector<std::int64_t> buffers;  ///< bytes
  std::vector<std::int32_t> scalars;
  std::string kind;  ///< empty: must end with the second buffer's first word at 32, advice apart
};
std::ostream& operator<<(std::ostream& out, const Bug& bug) { return out << bug.entry; }

const std::vector<Bug> kBugs = {
    {"bug_missing_barrier", 1, 64, {256}, {}, "race"},
    {"bug_missing_syncwarp", 1, 32, {128}, {}, "unordered"},
    {"bug_uninit_shared", 1, 64, {256}, {}, "uninitialized_read"},
    {"bug_oob_global", 1, 32, {128, 128}, {32}, "out_of_bounds"},
    {"bug_divergent_barrier", 1, 32, {128}, {}, "barrier_divergence"},
    {"bug_warp_spinlock", 1, 32, {4, 4}, {}, ""},
    {"bug_scope", 2, 1, {4, 4, 4}, {}, "race"},
    {"bug_cp_async_no_wait", 1, 32, {512, 512}, {}, "async_in_flight"},
    {"bug_exit_with_bulk", 1, 32, {128}, {}, "exit_in_flight"},
    {"bug_mbar_tx_short", 1, 32, {128, 128}, {}, "deadlock"},
};

const ptx::Module& module() {
  static const ptx::Module parsed = [] {
    const std::string path =
        std::string(TILEWRIGHT_SOURCE_DIR) + "/test/data/ptx_corpus/bugs/sm_90a.ptx";
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return ptx::parse(text, "bugs.ptx");
  }();
  return parsed;
}

class Bugs : public testing::TestWithParam<Bug> {};

void check(const Bug& bug, const Options& options) {
  Machine machine(ptx::parse_target("sm_90a"));
  Launch launch;
  launch.program = machine.load(module());
  launch.entry = bug.entry;
  launch.grid.x = bug.grid;
  launch.block.x = bug.block;
  std::vector<std::uint64_t> addresses;
  auto push = [&](const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    launch.params.insert(launch.params.end(), from, from + bytes);
  };
  for (const std::int64_t bytes : bug.buffers) {
    addresses.push_back(machine.allocate(bytes));
    machine.fill(addresses.back(), bytes, 0);
    push(&addresses.back(), 8);
  }
  for (const std::int32_t value : bug.scalars)
    push(&value, 4);
  const LaunchReport report = machine.launch(launch, options);
  const std::string what = "seed " + std::to_string(options.seed) + " divergence " +
                           std::string(name(options.divergence)) + " delivery " +
                           std::string(name(options.delivery));
  if (bug.kind.empty()) {
    std::int32_t counter = 0;
    machine.read(addresses[1], std::as_writable_bytes(std::span(&counter, 1)));
    EXPECT_TRUE(report.ok()) << what;
    EXPECT_EQ(counter, 32) << what;
    return;
  }
  ASSERT_FALSE(report.findings.empty()) << what;
  EXPECT_EQ(name(report.findings[0].kind), bug.kind) << what << to_string(report.findings[0]);
  EXPECT_FALSE(report.ok()) << what;
}

TEST_P(Bugs, IsReportedInEverySchedule) {
  const char* text = std::getenv("TILEWRIGHT_EMU_SEEDS");
  const std::uint64_t seeds = text == nullptr ? 4 : std::strtoull(text, nullptr, 10);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    for (const Residency r : {Residency::all, Residency::estimate, Residency::one}) {
      for (const Delivery d : {Delivery::late, Delivery::eager, Delivery::random}) {
        for (const Divergence v : {Divergence::converge, Divergence::maximal, Divergence::random}) {
          Options o;
          o.seed = seed;
          o.residency = r;
          o.delivery = d;
          o.divergence = v;
          check(GetParam(), o);
          if (HasFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Bugs, testing::ValuesIn(kBugs),
                         [](const auto& row) { return row.param.entry; });

}  // namespace
}  // namespace tilewright::emu

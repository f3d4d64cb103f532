// SPDX-License-Identifier: Apache-2.0
// Pairs of kernels of test/data/ptx_own/defects.cu: in every schedule the right one is clean and
// gives its values, and the planted defect of the other is the first finding.
#include "emu/programs.h"

namespace tilewright::emu {
namespace {

using test::at;
using test::expect_clean;
using test::Ints;
using test::module_of;
using test::program_input;
using test::schedule_text;
using test::schedules;
using test::table;

struct Pair {
  std::string name;
  std::uint32_t grid = 1, block = 64;
  std::string kind;  ///< of the bad one; "a or b" where the schedule decides which comes first
  Ints (*expected)(const Ints& in) = nullptr;
  bool zeros = false;  ///< `in` is a lock, a flag or a count
  std::int64_t dynamic_smem_bytes = 0;
};
std::ostream& operator<<(std::ostream& out, const Pair& pair) { return out << pair.name; }

constexpr int kCount = 256;  // the argument n

/// Sums over rounds of `width` elements, each thread those of the thread opposite.
template <int width>
Ints opposite_sums(const Ints& in) {
  return table(width, [&](int t) {
    int sum = 0;
    for (int i = 0; i < kCount; i += width)
      sum += at(in, i + width - 1 - t);
    return sum;
  });
}
Ints reversed(const Ints& in) {
  return table(64, [&](int t) { return at(in, 63 - t); });
}
Ints same(const Ints& in) {
  return table(64, [&](int t) { return at(in, t); });
}

const std::vector<Pair> kPairs = {
    {"warp_specialised", 1, 64, "race or barrier_mismatch", opposite_sums<32>},
    {"copy_ring", 1, 64, "async_in_flight", opposite_sums<64>},
    {"copy_exchange", 1, 64, "async_in_flight", reversed},
    {"tile_sum", 1, 64, "unordered",
     [](const Ints& in) {
       return table(64, [&](int t) {
         int sum = 0;
         for (int i = 0; i < 8; ++i)
           sum += at(in, t / 8 * 8 + i);
         return sum;
       });
     }},
    {"neighbour", 2, 64, "race",
     [](const Ints& in) { return table(128, [&](int t) { return at(in, t ^ 64); }); }},
    {"lock", 2, 64, "race", [](const Ints&) { return Ints{4}; }, true},
    {"publish", 2, 32, "race",
     [](const Ints&) {
       return Ints{7, 7};
     },
     true},
    {"last_block", 3, 64, "race",
     [](const Ints&) {
       return Ints{3, 0, 1, 2};
     },
     true},
    {"histogram", 1, 64, "race or unordered",
     [](const Ints& in) {
       Ints bins(8);
       for (int t = 0; t < 64; ++t)
         ++bins[static_cast<std::size_t>(at(in, t) & 7)];
       return bins;
     }},
    {"half_shuffle", 1, 64, "shuffle_mask",
     [](const Ints& in) {
       return table(64, [&](int t) { return t % 32 < 16 ? at(in, t ^ 8) : -at(in, t); });
     }},
    {"divergent_barrier", 1, 64, "barrier_divergence", reversed},
    {"barrier_count", 1, 64, "barrier_mismatch", reversed},
    {"beyond_shared", 1, 64, "out_of_bounds", same, false, 256},
    {"vector_load", 1, 64, "misaligned",
     [](const Ints& in) {
       const int sum = at(in, 0) + at(in, 1) + at(in, 2) + at(in, 3);
       return Ints(64, sum);
     }},
    {"heap", 1, 64, "use_after_free", same},
    {"overlap", 3, 32, "race",
     [](const Ints& in) { return table(96, [&](int t) { return at(in, t) + t / 32; }); }},
    {"warp_sum", 1, 64, "unordered",
     [](const Ints& in) {
       int sum = 0;
       for (int t = 0; t < 64; ++t)
         sum += at(in, t);
       return Ints{sum};
     }},
    {"reused_tile", 1, 64, "race", opposite_sums<64>},
    {"half_written", 1, 64, "uninitialized_read", reversed},
    {"bulk_phases", 1, 64, "async_in_flight or deadlock",
     [](const Ints& in) {
       return table(64, [&](int t) { return at(in, 63 - t) + at(in, 127 - t); });
     }},
    {"bulk_store", 1, 64, "proxy_fence",
     [](const Ints& in) { return table(64, [&](int t) { return at(in, t) + 1; }); }},
    {"scopes", 2, 32, "race",
     [](const Ints&) {
       return Ints{5, 5};
     },
     true},
};

struct PairOutcome {
  LaunchReport report;
  Ints out;
};

PairOutcome run(const Pair& pair, const std::string& suffix, const Options& options) {
  Machine machine(ptx::parse_target("sm_90a"));
  Launch launch;
  launch.program = machine.load(module_of("ptx_own/defects_sm_90a.ptx"));
  launch.entry = pair.name + suffix;
  launch.grid.x = pair.grid;
  launch.block.x = pair.block;
  if (pair.name == "neighbour") launch.cluster.x = 2;
  launch.dynamic_smem_bytes = pair.dynamic_smem_bytes;
  const std::uint64_t in = machine.allocate(4096, "in"), out = machine.allocate(4096, "out");
  const Ints numbers = pair.zeros ? Ints(1024) : program_input();
  machine.write(in, std::as_bytes(std::span(numbers)));
  machine.fill(out, 4096, 0);
  launch.params.resize(20);
  const std::int32_t n = kCount;
  std::memcpy(launch.params.data(), &in, 8);
  std::memcpy(launch.params.data() + 8, &out, 8);
  std::memcpy(launch.params.data() + 16, &n, 4);
  PairOutcome outcome{machine.launch(launch, options), Ints(1024)};
  machine.read(out, std::as_writable_bytes(std::span(outcome.out)));
  return outcome;
}

class Defects : public testing::TestWithParam<Pair> {};

TEST_P(Defects, TheRightKernelIsCleanAndGivesItsValues) {
  const Pair& pair = GetParam();
  const Ints expected = pair.expected(pair.zeros ? Ints(1024) : program_input());
  for (const Options& o : schedules()) {
    PairOutcome outcome = run(pair, "_clean", o);
    expect_clean(outcome.report, o);
    outcome.out.resize(expected.size());
    EXPECT_EQ(outcome.out, expected) << schedule_text(o);
    if (HasFailure()) return;
  }
}

TEST_P(Defects, ThePlantedOneIsTheFirstFinding) {
  const Pair& pair = GetParam();
  for (const Options& o : schedules()) {
    const LaunchReport report = run(pair, "_bad", o).report;
    ASSERT_FALSE(report.ok()) << schedule_text(o);
    const Diagnostic& first = report.findings[0];
    EXPECT_NE((" " + pair.kind + " ").find(" " + std::string(name(first.kind)) + " "),
              std::string::npos)
        << schedule_text(o) << ": " << to_string(first);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Own, Defects, testing::ValuesIn(kPairs),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace tilewright::emu

// SPDX-License-Identifier: Apache-2.0
// What holds for all operators that look up tuned configurations.
#include "operator_fixture.h"
#include "tilewright/operators.h"
#include "tilewright/trace.h"
#include "tilewright/tune_record.h"
#include "tune/session.h"

#include <array>
#include <cstddef>
#include <map>
#include <set>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;
using test::Placement;

class TunedOperators : public OperatorTest {
 protected:
  enum class Candidates : std::uint8_t {
    all,
    of_first_knob  ///< the first one of each of its values
  };
  /// Runs with candidates of the spaces NAME.blocks and NAME.code_blocks: each gives the bits of
  /// the first.
  void run_blocks(const Operator& op, const std::vector<Array>& inputs, const Options& options = {},
                  Candidates wanted = Candidates::all) {
    const tune::Watch watch;
    const std::vector<Array> first = run(op, inputs, options);
    int spaces = 0;
    for (const tune::Lookup& lookup : std::vector<tune::Lookup>(watch.lookups())) {
      const std::string_view name = lookup.space->name;
      if (!name.ends_with("blocks") && !name.ends_with("parts")) continue;
      ++spaces;
      std::set<int> seen;
      for (const tune::Config& config :
           tune::candidates(*lookup.space, device.properties(), lookup.key)) {
        const bool is_new = seen.insert(config[0]).second;
        if (wanted == Candidates::of_first_knob && !is_new) continue;
        SCOPED_TRACE(std::string(lookup.space->name) + " " +
                     tune::config_text(*lookup.space, config));
        const tune::Pin pin(*lookup.space, config);
        expect_equal(run(op, inputs, options), first);
      }
    }
    EXPECT_EQ(spaces, 1) << op.schema.name;
  }

  static void expect_equal(const std::vector<Array>& again, const std::vector<Array>& first) {
    ASSERT_EQ(again.size(), first.size());
    for (std::size_t i = 0; i < first.size(); ++i)
      EXPECT_EQ(again[i].bytes, first[i].bytes) << first[i].name;
  }

  /// Runs with every value of the space of the operator's name, which rounds differently.
  template <class Run>
  void for_orders(const Operator& op, const std::vector<Array>& inputs, Run&& runs) {
    const tune::Watch watch;
    run(op, inputs);
    int spaces = 0;
    for (const tune::Lookup& lookup : std::vector<tune::Lookup>(watch.lookups())) {
      if (lookup.space->name != op.schema.name) continue;
      ++spaces;
      for (const tune::Config& config :
           tune::candidates(*lookup.space, device.properties(), lookup.key)) {
        SCOPED_TRACE(tune::config_text(*lookup.space, config));
        const tune::Pin pin(*lookup.space, config);
        runs();
      }
    }
    EXPECT_EQ(spaces, 1) << op.schema.name;
  }
};

/// The first row of each array, in bytes.
std::vector<std::vector<std::byte>> first_rows(const std::vector<Array>& arrays) {
  std::vector<std::vector<std::byte>> rows;
  for (const Array& array : arrays) {
    const auto count = static_cast<std::ptrdiff_t>(array.bytes.size()) / array.shape[0];
    rows.emplace_back(array.bytes.begin(), array.bytes.begin() + count);
  }
  return rows;
}

TEST_F(TunedOperators, GiveARowTheSameBitsInEveryBlock) {
  for (std::int64_t h : {64, 1000}) {
    const Array x = random("x", bf16, {5, h}), w = random("w", bf16, {h}, 1, 2);
    run_blocks(find_operator("rms_norm"), {x, w});
    run_blocks(find_operator("layer_norm"), {x, w, random("bias", bf16, {h}, 1, 3)});
  }
  run_blocks(find_operator("fused_add_rms_norm"),
             {random("x", bf16, {3, 264}), random("residual", bf16, {3, 264}, 1, 2)});
  run_blocks(find_operator("qk_norm"),
             {random("q", f16, {3, 4, 96}), random("k", f16, {3, 2, 96})});
}

constexpr std::int64_t kWidths[] = {64, 96, 200, 512, 2304, 2880, 4096, 7168};

TEST_F(TunedOperators, GiveARowTheSameBitsWithAnyNumberOfThreads) {
  constexpr auto kThreadCounts = Candidates::of_first_knob;
  for (Type type : {bf16, f32}) {
    for (std::int64_t h : kWidths) {
      SCOPED_TRACE(h);
      const Array x = random("x", type, {2, h}), w = random("w", type, {h}, 1, 2);
      const Array bias = random("bias", type, {h}, 1, 3);
      run_blocks(find_operator("rms_norm"), {x, w}, {}, kThreadCounts);
      run_blocks(find_operator("fused_add_rms_norm"), {x, random("residual", type, {2, h}, 1, 4)},
                 {{"quant", "fp8_token"}}, kThreadCounts);
      const Operator& layer_norm = find_operator("layer_norm");
      for_orders(layer_norm, {x, w, bias}, [&] {
        run_blocks(layer_norm, {x, w, bias}, {}, kThreadCounts);
      });
    }
  }
}

TEST_F(TunedOperators, GiveAHeadTheSameBitsWithAnyNumberOfLanes) {
  const struct {
    const char* style;
    std::int64_t d, rotary;
  } heads[] = {{"neox", 128, 128}, {"neox", 96, 48}, {"interleaved", 80, 16}, {"neox", 256, 64}};
  for (const auto& head : heads) {
    SCOPED_TRACE(head.d);
    const Array q = random("q", bf16, {3, 4, head.d}), k = random("k", bf16, {3, 2, head.d}, 1, 2);
    run_blocks(find_operator("qk_norm"), {q, k}, {}, Candidates::of_first_knob);
    run_blocks(find_operator("qk_norm_rope"),
               {q, k, make_array("positions", s32, {3}, std::array{0.0, 7.0, 5.0}),
                random("cos_sin", f32, {8, head.rotary}, 1, 3)},
               {{"style", head.style}}, Candidates::of_first_knob);
  }
}

TEST_F(TunedOperators, GiveARowTheSameBitsAmongAnyNumberOfRows) {
  constexpr std::int64_t kMany = 300;
  const auto among = [&](std::int64_t rows, std::int64_t h, Placement placement) {
    const Array x = random("x", bf16, {kMany, h});
    const Array few = make_array("x", bf16, {rows, h}, [&] {
      std::vector<double> values = to_doubles(x);
      values.resize(static_cast<std::size_t>(rows * h));
      return values;
    }());
    std::vector<Array> out = run(find_operator("rms_norm"), {few}, {}, placement);
    const std::vector<Array> centred = run(find_operator("layer_norm"), {few}, {}, placement);
    out.insert(out.end(), centred.begin(), centred.end());
    return first_rows(out);
  };
  for (std::int64_t h : {96, 1000, 2304}) {
    const auto alone = among(1, h, {});
    EXPECT_EQ(among(kMany, h, {}), alone) << h;
    EXPECT_EQ(among(3, h, {.row_padding = 1}), alone) << h;
  }
}

/// Large numbers of rows are cut down.
Problem small_problem(const Operator& op, std::string_view text, std::int64_t rows) {
  Problem problem = parse_problem(op.schema, text);
  for (auto& [name, size] : problem.sizes) {
    const bool counts = name == "T" || name == "V" || name == "M" || name == "P";
    if (counts && size > 4096) size = rows;
  }
  return problem;
}

/// Every space that an operator's problems lead to: also of as many rows as blocks may share.
std::map<std::string_view, const tune::Space*> spaces_of_operators() {
  std::map<std::string_view, const tune::Space*> spaces;
  for (const Operator* op : operators()) {
    for (const std::string_view text : op->bench_problems) {
      for (const std::int64_t rows : {64, 65}) {
        const Problem problem = small_problem(*op, text, rows);
        const tune::Inputs inputs{op, make_inputs(*op, problem, 0), problem.options};
        const tune::Watch watch;
        (void)op->trace(tune::unplaced_arguments(inputs, {}), ptx::Target{90, 'a'});
        for (const tune::Lookup& lookup : watch.lookups())
          spaces.emplace(lookup.space->name, lookup.space);
      }
    }
  }
  return spaces;
}

TEST(TunedRecords, AreOfSpacesThatOperatorsHave) {
  const auto spaces = spaces_of_operators();
  EXPECT_GE(spaces.size(), 10U);
  const tune::Library library(tune::shipped_records(), "");
  for (const tune::ShippedFile& shipped : tune::shipped_records()) {
    DeviceProperties device;
    const tune::RecordFile file = tune::parse_records(shipped.text, shipped.name);
    device.name = file.device;
    for (const tune::Record& record : file.records) {
      const auto space = spaces.find(record.space);
      ASSERT_NE(space, spaces.end()) << record.from << ": no operator has " << record.space;
      tune::Key key{};
      for (std::size_t i = 0; i < record.keys.size() && i < key.size(); ++i)
        key[i] = record.keys[i].second;
      const auto found = library.find(*space->second, device, key);
      ASSERT_TRUE(found.has_value()) << record.from << " is not valid";
      EXPECT_EQ(tune::make_record(*space->second, key, *found).knobs, record.knobs) << record.from;
    }
  }
}

}  // namespace
}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// What holds for all operators that look up tuned configurations.
#include "operator_fixture.h"
#include "tilewright/operators.h"
#include "tilewright/trace.h"
#include "tilewright/tune_record.h"
#include "tune/session.h"

#include <map>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;

class TunedOperators : public OperatorTest {
 protected:
  /// Runs with every candidate of the spaces NAME.blocks: each gives the bits of the first.
  void run_blocks(const Operator& op, const std::vector<Array>& inputs,
                  const Options& options = {}) {
    const tune::Watch watch;
    const std::vector<Array> first = run(op, inputs, options);
    int spaces = 0;
    for (const tune::Lookup& lookup : std::vector<tune::Lookup>(watch.lookups())) {
      if (!lookup.space->name.ends_with(".blocks")) continue;
      ++spaces;
      for (const tune::Config& config :
           tune::candidates(*lookup.space, device.properties(), lookup.key)) {
        SCOPED_TRACE(std::string(lookup.space->name) + " " +
                     tune::config_text(*lookup.space, config));
        const tune::Pin pin(*lookup.space, config);
        const std::vector<Array> again = run(op, inputs, options);
        for (std::size_t i = 0; i < first.size(); ++i)
          EXPECT_EQ(again[i].bytes, first[i].bytes) << first[i].name;
      }
    }
    EXPECT_EQ(spaces, 1) << op.schema.name;
  }
};

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

/// Large numbers of rows are cut down.
Problem small_problem(const Operator& op, std::string_view text) {
  Problem problem = parse_problem(op.schema, text);
  for (auto& [name, size] : problem.sizes) {
    const bool counts = name == "T" || name == "V" || name == "M" || name == "P";
    if (counts && size > 4096) size = 64;
  }
  return problem;
}

/// Every space that an operator's problems lead to.
std::map<std::string_view, const tune::Space*> spaces_of_operators() {
  std::map<std::string_view, const tune::Space*> spaces;
  for (const Operator* op : operators()) {
    for (const std::string_view text : op->bench_problems) {
      const Problem problem = small_problem(*op, text);
      const tune::Inputs inputs{op, make_inputs(*op, problem, 0), problem.options};
      const tune::Watch watch;
      (void)op->trace(tune::unplaced_arguments(inputs, {}), ptx::Target{90, 'a'});
      for (const tune::Lookup& lookup : watch.lookups())
        spaces.emplace(lookup.space->name, lookup.space);
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

// SPDX-License-Identifier: Apache-2.0
// scatter_rows against its reference: types, widths, indices outside, strides, refusals.
#include "kernels/row_gather/row_gather.h"
#include "kernels/row_gather/row_scatter.h"
#include "operator_fixture.h"

#include <algorithm>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

class RowScatter : public OperatorTest {
 protected:
  const Operator& scatter = scatter_rows_operator();

  static Array ids(const std::vector<double>& values, Type type = s32) {
    return make_array("ids", type, {static_cast<std::int64_t>(values.size())}, values);
  }
  static std::vector<Array> inputs(Type type, std::int64_t h, const Array& ids,
                                   std::int64_t dst_rows = 9) {
    return {random("src", type, {ids.shape[0], h}), ids, random("dst", type, {dst_rows, h}, 1, 7)};
  }
};

TEST_F(RowScatter, CopiesRowsOfEveryTypeAndWidth) {
  for (Type type : {bf16, f32, f64, u8, s32, e4m3}) {
    for (std::int64_t h : {1, 7, 8, 63, 100, 333, 2304, 7168})
      run(scatter, inputs(type, h, ids({3, 0, 8, -1, 1})));
  }
}

TEST_F(RowScatter, IsRightInEveryConfiguration) {
  run_candidates(scatter, inputs(bf16, 1032, ids({3, -1, 8, 9, 0, 5})));
  run_candidates(scatter, inputs(f64, 333, ids({3, -1, 8, 9, 0, 5}, s64)));
}

TEST_F(RowScatter, SkipsIndicesOutside) {
  run(scatter, inputs(f16, 64, ids({3, -1, 8, 9, -1, 9}, s32)));
  run(scatter, inputs(f16, 64, ids({3, -1, 8, 9, -9e15, 9e15, 4294967296.0, 9}, s64)));
  run(scatter, inputs(f16, 64, ids({-1, -1}), 0));
}

TEST_F(RowScatter, TakesStridesAndAlignments) {
  for (std::int64_t padding : {0, 1, 4, 8}) {
    for (std::int64_t offset : {0, 1, 2, 8})
      run(scatter, inputs(bf16, 96, ids({5, 4, 3, 7})), {},
          Placement{.row_padding = padding, .offset_elems = offset});
  }
}

TEST_F(RowScatter, CopiesManyRows) {
  std::vector<double> many;
  for (int i = 0; i < 300; ++i)
    many.push_back(i * 11 % 350);
  run(scatter, inputs(bf16, 40, ids(many), 350));
  run(scatter, inputs(u8, 1, ids(many, s64), 200));  // some are outside
}

TEST_F(RowScatter, UndoesAGather) {
  const Array src = random("src", bf16, {6, 72});
  const Array order = ids({4, 2, 0, 5, 1, 3});
  Array gathered = run(gather_rows_operator(), {src, order}).front();
  gathered.name = "src";
  // What is compared is the reference, which must be src for an operator that gives its bits.
  HostTensors tensors;
  for (const Array& each : {gathered, order, random("dst", bf16, {6, 72}, 1, 7)})
    tensors.set(each);
  Arguments arguments(scatter.schema);
  scatter.reference(arguments, tensors);
  EXPECT_EQ(tensors.at("dst").bytes, src.bytes);
  run(scatter, {gathered, order, random("dst", bf16, {6, 72}, 1, 7)});
}

TEST_F(RowScatter, LaunchesNothingForNoRows) { run(scatter, inputs(bf16, 8, ids({}))); }

TEST_F(RowScatter, IsTheSameInEverySchedule) {
  run_schedules(scatter, inputs(bf16, 520, ids({5, -1, 3, 7, 0})));
}

TEST_F(RowScatter, FillsProblemsWithEachRowOnce) {
  for (const char* text : {"T=64,V=100,H=8,src=u8", "T=9,V=1,H=8,src=u8", "T=7,V=7,H=8,src=u8",
                           "T=3,V=0,H=8,src=u8", "T=130,V=128,H=8,src=u8,ids=s64"}) {
    SCOPED_TRACE(text);
    const Problem problem = parse_problem(scatter.schema, text);
    std::vector<Array> made = make_inputs(scatter, problem, 1);
    std::vector<double> named_rows = to_doubles(named(made, "ids"));
    std::sort(named_rows.begin(), named_rows.end());
    const auto first =
        std::find_if(named_rows.begin(), named_rows.end(), [](double row) { return row >= 0; });
    EXPECT_EQ(std::adjacent_find(first, named_rows.end()), named_rows.end());
    EXPECT_EQ(named_rows.end() - first, std::min(problem.size("T"), problem.size("V")));
    run(scatter, made);
  }
}

TEST_F(RowScatter, RefusesRowsForOnePlace) {
  EXPECT_EQ(refusal(scatter, inputs(bf16, 8, ids({5, 2, -1, 5}))),
            "scatter_rows: ids[0] and ids[3] are 5; each row of src must have a row of its own");
}

TEST_F(RowScatter, RefusesWhatItCannotScatter) {
  EXPECT_EQ(refusal(scatter, inputs(bf16, 0, ids({1}))),
            "scatter_rows: rows have 0 elements; they must have some");
  Buffer memory(device, 4096);
  std::int64_t shape[] = {4, 8};
  std::int64_t count[] = {4};
  const View a = make_view(memory.address(), f16, shape);
  const View b = make_view(memory.address() + 1024, f16, shape);
  const View four = make_view(memory.address() + 2048, s32, count);
  auto text = [&](const View& src, const View& index, const View& dst) {
    try {
      scatter_rows(stream, src, index, dst);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  View other = b;
  other.type = bf16;
  EXPECT_EQ(text(a, four, other),
            "scatter_rows: src has type f16 and dst bf16; a scatter does not convert");
  EXPECT_EQ(text(a, make_view(four.address, f32, count), b),
            "scatter_rows: ids has type f32; it must be s32 or s64");
  std::int64_t three[] = {3};
  EXPECT_EQ(text(a, make_view(four.address, s32, three), b),
            "scatter_rows: ids is s32[3]; it must have 4 contiguous elements");
  std::int64_t wider[] = {4, 9};
  EXPECT_EQ(text(a, four, make_view(b.address, f16, wider)),
            "scatter_rows: src is f16[4,8] and dst f16[4,9]; both must have rows of the same "
            "length");
  std::int64_t apart[] = {16, 2};
  EXPECT_EQ(text(a, four, make_view(b.address, f16, shape, apart)),
            "scatter_rows: dst is f16[4,8]:[16,2] and has 2 as its last stride; it must be 1");
  std::int64_t close[] = {4, 1};
  EXPECT_EQ(text(a, four, make_view(b.address, f16, shape, close)),
            "scatter_rows: dst is f16[4,8]:[4,1], whose elements overlap; they must be apart");
  EXPECT_EQ(text(a, four, a), "scatter_rows: src and dst overlap; they must be apart");
  EXPECT_EQ(text(a, four, make_view(four.address, f16, shape)),
            "scatter_rows: ids and dst overlap; they must be apart");
}

}  // namespace
}  // namespace tilewright

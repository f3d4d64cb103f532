// SPDX-License-Identifier: Apache-2.0
// tile_copy: the same bits for every shape, stride, alignment and element size.
#include "kernels/tile_copy/tile_copy.h"
#include "operator_fixture.h"

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

class TileCopy : public OperatorTest {
 protected:
  const Operator& op = tile_copy_operator();
};

TEST_F(TileCopy, CopiesEveryElementSize) {
  for (Type type : {u8, s16, bf16, f32, f64, e4m3}) {
    run(op, {random("src", type, {37, 100})});
  }
}

TEST_F(TileCopy, CopiesRaggedEdges) {
  for (std::int64_t rows : {1, 2, 7, 65}) {
    for (std::int64_t columns : {1, 3, 8, 129, 1000})
      run(op, {random("src", f16, {rows, columns})});
  }
}

TEST_F(TileCopy, LeavesTheGapsBetweenRowsAlone) {
  for (std::int64_t padding : {1, 2, 4, 8}) {
    run(op, {random("src", f16, {33, 72})}, {}, Placement{.row_padding = padding});
  }
}

TEST_F(TileCopy, TakesTheAlignmentThatAddressesHave) {
  for (std::int64_t offset : {1, 2, 4, 8}) {
    run(op, {random("src", f16, {16, 64})}, {}, Placement{.offset_elems = offset});
    run(op, {random("src", u8, {16, 64})}, {},
        Placement{.row_padding = 64, .offset_elems = offset});
  }
}

TEST_F(TileCopy, IsRightInEveryConfiguration) {
  run_candidates(op, {random("src", f16, {37, 104})});
  run_candidates(op, {random("src", u8, {9, 30})}, {}, Placement{.row_padding = 1});
}

TEST_F(TileCopy, TakesTilesThatTheCallerChooses) {
  run(op, {random("src", f16, {100, 256})}, {{"tile_m", "32"}, {"threads", "256"}});
  run(op, {random("src", f32, {50, 30})}, {{"tile_m", "16"}, {"threads", "64"}});
}

TEST_F(TileCopy, PipelinesThroughSharedMemoryCopyTheSame) {
  Array src = random("src", f16, {67, 512});
  std::int64_t shape[] = {67, 512};
  for (int stages : {2, 3, 5}) {
    for (bool flat : {false, true}) {
      Buffer from(device, static_cast<std::int64_t>(src.bytes.size()));
      from.upload(src.bytes);
      Buffer to(device, from.size_bytes());
      TileCopyConfig config{.method = CopyMethod::async,
                            .threads = 64,
                            .threads_n = 64,
                            .vectors = 2,
                            .stages = stages,
                            .flat = flat};
      TileCopyPlan plan = plan_tile_copy(device.properties(), make_view(from.address(), f16, shape),
                                         make_view(to.address(), f16, shape), config);
      prepare_tile_copy(device, plan).launch(stream);
      stream.synchronize();
      EXPECT_EQ(download<std::byte>(to), src.bytes) << to_string(config);
    }
  }
}

TEST_F(TileCopy, CopiesNothingOfNothing) {
  run(op, {random("src", f32, {0, 5})});
  run(op, {random("src", f32, {5, 0})});
}

TEST_F(TileCopy, ReachesBeyondTwoToThe31Elements) {
  if (!emulated()) GTEST_SKIP() << "takes 8 GiB: the emulator's memory is sparse";
  constexpr std::int64_t kStride = (std::int64_t{1} << 31) + 8;
  Buffer src(device, kStride * 2 + 64);
  Buffer dst(device, 256);
  std::vector<std::uint8_t> row(8, 7);
  src.upload(std::as_bytes(std::span(row)), 0);
  src.upload(std::as_bytes(std::span(row)), kStride);
  std::int64_t shape[] = {2, 8};
  std::int64_t far[] = {kStride, 1};
  tile_copy(stream, make_view(src.address(), u8, shape, far), make_view(dst.address(), u8, shape));
  stream.synchronize();
  std::vector<std::uint8_t> got = download<std::uint8_t>(dst);
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_EQ(got[i], 7) << i;
}

TEST_F(TileCopy, RefusesWhatItCannotCopy) {
  Buffer memory(device, 4096);
  std::int64_t shape[] = {4, 8};
  std::int64_t wide[] = {8, 4};
  std::int64_t apart[] = {16, 2};
  View a = make_view(memory.address(), f16, shape);
  View b = make_view(memory.address() + 1024, f16, shape);
  auto text = [&](const View& src, const View& dst, TileCopyOptions options = {}) {
    try {
      tile_copy(stream, src, dst, options);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(text(a, make_view(b.address, bf16, shape)),
            "tile_copy: src has type f16 and dst bf16; a copy does not convert");
  EXPECT_EQ(text(a, make_view(b.address, f16, wide)),
            "tile_copy: src is f16[4,8] and dst f16[8,4]; the shapes must be equal");
  EXPECT_EQ(text(make_view(a.address, f16, shape, apart), b),
            "tile_copy: src f16[4,8]:[16,2] has 2 as its last stride; it must be 1");
  EXPECT_EQ(text(a, make_view(a.address + 16, f16, shape)),
            "tile_copy: src and dst overlap; they must be apart");
  EXPECT_EQ(text(a, b, {.threads = 100}),
            "tile_copy: threads=100; it must be a multiple of 32 up to 1024");
}

}  // namespace
}  // namespace tilewright

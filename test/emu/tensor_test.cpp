// SPDX-License-Identifier: Apache-2.0
// Tensor copies: boxes, ragged edges, swizzles, stores and reductions; maps that the driver
// refuses.
#include "tilewright/emulator.h"
#include "tilewright/module.h"
#include "tilewright/tensor_map.h"

#include <cstring>
#include <gtest/gtest.h>

namespace tilewright::emu {
namespace {

/// One block loads a box of 8 rows of 16 words, then stores or adds it to another tensor.
constexpr const char* kText = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry kernel(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128], .param .u32 x, .param .u32 y)
{
.reg .b32 %r<8>;
.reg .b64 %rd<8>;
.reg .pred %p<4>;
.shared .align 1024 .b8 tile[512];
.shared .align 8 .b64 bar;
mov.u32 %r0, %tid.x;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra END;
ld.param.u32 %r1, [x];
ld.param.u32 %r2, [y];
mov.b64 %rd0, from;
cvta.param.u64 %rd1, %rd0;
mov.b64 %rd2, to;
cvta.param.u64 %rd3, %rd2;
mbarrier.init.shared::cta.b64 [bar], 1;
fence.proxy.async;
mbarrier.arrive.expect_tx.shared::cta.b64 %rd4, [bar], 512;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r1, %r2}], [bar];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
STORE
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
ret;
}
)";

struct Tensors {
  LaunchReport report;
  std::vector<std::uint32_t> to;
};

constexpr int kCols = 20, kRows = 10;

Tensors run(const std::string& store, int x, int y, TensorSwizzle load_swizzle,
            TensorSwizzle store_swizzle, Delivery delivery) {
  std::string text = kText;
  text.replace(text.find("STORE"), 5, store);
  Machine machine(ptx::parse_target("sm_90a"));
  Launch launch;
  launch.program = machine.load(ptx::parse(text, "tensor.ptx"));
  launch.entry = "kernel";
  launch.block.x = 32;
  std::vector<std::uint32_t> data(kCols * kRows);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::uint32_t>(i + 1);
  const std::int64_t bytes = kCols * kRows * 4;
  const std::uint64_t from = machine.allocate(bytes), to = machine.allocate(bytes);
  machine.write(from, std::as_bytes(std::span(data)));
  machine.fill(to, bytes, 0);
  TensorMap map{.type = Type::u32, .rank = 2, .address = from};
  map.extents = {kCols, kRows, 1, 1, 1};
  map.strides = {kCols * 4, 0, 0, 0};
  map.box = {16, 8, 1, 1, 1};
  map.swizzle = load_swizzle;
  const EncodedTensorMap a = encode_tensor_map(map);
  map.address = to;
  map.swizzle = store_swizzle;
  const EncodedTensorMap b = encode_tensor_map(map);
  launch.params.resize(264);
  std::memcpy(launch.params.data(), a.data(), 128);
  std::memcpy(launch.params.data() + 128, b.data(), 128);
  std::memcpy(launch.params.data() + 256, &x, 4);
  std::memcpy(launch.params.data() + 260, &y, 4);
  Options options;
  options.delivery = delivery;
  Tensors out;
  out.report = machine.launch(launch, options);
  out.to.resize(kCols * kRows);
  machine.read(to, std::as_writable_bytes(std::span(out.to)));
  return out;
}

const std::string kStore =
    "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {%r1, %r2}], [tile];";

void expect_box(const Tensors& t, int x, int y) {
  for (const Diagnostic& d : t.report.findings)
    ADD_FAILURE() << to_string(d);
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kCols; ++c) {
      const bool inside = c >= x && c < x + 16 && r >= y && r < y + 8;
      const auto want = static_cast<std::uint32_t>(inside ? r * kCols + c + 1 : 0);
      ASSERT_EQ(t.to[static_cast<std::size_t>(r * kCols + c)], want) << r << "," << c;
    }
  }
}

TEST(TensorCopy, MovesABoxInsideTheTensor) {
  expect_box(run(kStore, 2, 1, TensorSwizzle::none, TensorSwizzle::none, Delivery::late), 2, 1);
}

TEST(TensorCopy, SkipsWhatLiesOutside) {
  for (const auto& [x, y] : {std::pair(-3, -2), std::pair(10, 7), std::pair(19, 9)}) {
    expect_box(run(kStore, x, y, TensorSwizzle::none, TensorSwizzle::none, Delivery::eager), x, y);
  }
}

TEST(TensorCopy, SwizzlesBothWaysAlike) {
  for (const TensorSwizzle s : {TensorSwizzle::b64, TensorSwizzle::b128}) {
    expect_box(run(kStore, 1, 1, s, s, Delivery::random), 1, 1);
  }
}

TEST(TensorCopy, KeepsTheSwizzleInSharedMemory) {
  // 64-byte rows: rows 2 and 3 lie in the second 128-byte line, where chunks swap in pairs.
  const Tensors t = run(kStore, 0, 0, TensorSwizzle::b64, TensorSwizzle::none, Delivery::late);
  EXPECT_EQ(t.to[0], 1U);
  EXPECT_EQ(t.to[2 * kCols], 2U * kCols + 5);
  EXPECT_EQ(t.to[2 * kCols + 4], 2U * kCols + 1);
}

TEST(TensorCopy, ReducesIntoGlobalMemory) {
  const std::string add =
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd3, {%r1, %r2}], "
      "[tile];\ncp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd3, {%r1, "
      "%r2}], [tile];";
  const Tensors t = run(add, 0, 0, TensorSwizzle::none, TensorSwizzle::none, Delivery::late);
  EXPECT_TRUE(t.report.ok()) << (t.report.findings.empty() ? "" : to_string(t.report.findings[0]));
  EXPECT_EQ(t.to[0], 2U);
  EXPECT_EQ(t.to[7 * kCols + 15], 2U * (7 * kCols + 16));
}

TEST(TensorCopy, GivesRanksThatDifferAsAFinding) {
  const std::string wrong =
      "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd3, {%r1}], [tile];";
  const Tensors t = run(wrong, 0, 0, TensorSwizzle::none, TensorSwizzle::none, Delivery::late);
  ASSERT_FALSE(t.report.findings.empty());
  EXPECT_EQ(t.report.findings[0].message, "gives 1 coordinates for a tensor of rank 2");
}

struct Refusal {
  const char* name;
  TensorMap map;
  const char* message;
};

TEST(TensorMap, RefusesWhatTheDriverRefuses) {
  TensorMap good{.type = Type::f16, .rank = 2, .address = 0x1000};
  good.extents = {64, 64, 1, 1, 1};
  good.strides = {128, 0, 0, 0};
  good.box = {64, 8, 1, 1, 1};
  good.swizzle = TensorSwizzle::b128;
  EXPECT_NO_THROW(encode_tensor_map(good));
  auto with = [&](auto change) {
    TensorMap m = good;
    change(m);
    return m;
  };
  const std::vector<Refusal> rows = {
      {"rank", with([](TensorMap& m) { m.rank = 6; }), "tensor map: rank 6; use 1 to 5"},
      {"address", with([](TensorMap& m) { m.address = 8; }),
       "tensor map: the address is no multiple of 16"},
      {"stride", with([](TensorMap& m) { m.strides[0] = 24; }),
       "tensor map: stride of 24 bytes of dimension 1; use a multiple of 16 below 2^40"},
      {"box", with([](TensorMap& m) { m.box[1] = 257; }),
       "tensor map: box 257 of dimension 1; use 1 to 256"},
      {"inner", with([](TensorMap& m) { m.box[0] = 4; }),
       "tensor map: the box's inner dimension has 8 bytes; use a multiple of 16"},
      {"swizzle", with([](TensorMap& m) { m.swizzle = TensorSwizzle::b32; }),
       "tensor map: the box's inner dimension has 128 bytes; the swizzle allows 32"},
      {"type", with([](TensorMap& m) { m.type = Type::e2m1; }),
       "tensor map: elements of type e2m1; use one of 8 to 64 bits"},
      {"fill", with([](TensorMap& m) {
         m.type = Type::u16;
         m.fill = TensorFill::nan;
       }),
       "tensor map: a fill of NaN for elements of type u16; use zeros"},
  };
  for (const Refusal& row : rows) {
    try {
      encode_tensor_map(row.map);
      ADD_FAILURE() << row.name;
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), row.message);
    }
  }
}

}  // namespace
}  // namespace tilewright::emu

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
            TensorSwizzle store_swizzle, Delivery delivery,
            const std::string& to_space = "shared::cluster") {
  std::string text = kText;
  text.replace(text.find("shared::cluster"), 15, to_space);
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

TEST(TensorCopy, LoadsIntoTheBlockItself) {
  const Tensors t =
      run(kStore, 2, 1, TensorSwizzle::none, TensorSwizzle::none, Delivery::late, "shared::cta");
  expect_box(t, 2, 1);
}

/// A warp copies a map to shared memory, edits it there, publishes it, and loads a box by it.
constexpr const char* kEdit = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry kernel(.param .align 64 .b8 from[128], .param .u64 to, .param .u64 scratch)
{
.reg .b32 %r<8>;
.reg .b64 %rd<8>;
.reg .pred %p<4>;
.shared .align 128 .b8 map[128];
.shared .align 128 .b8 tile[256];
.shared .align 8 .b64 bar;
ld.param.u64 %rd1, [to];
ld.param.u64 %rd5, [scratch];
mov.u32 %r0, %tid.x;
setp.ne.u32 %p0, %r0, 0;
shl.b32 %r1, %r0, 2;
cvt.u64.u32 %rd0, %r1;
mov.b64 %rd2, from;
add.u64 %rd2, %rd2, %rd0;
ld.param.u32 %r2, [%rd2];
mov.u32 %r3, map;
add.u32 %r3, %r3, %r1;
st.shared.u32 [%r3], %r2;
bar.warp.sync -1;
@%p0 bra PUBLISH;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 1, 4;
tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 1, 6;
mbarrier.init.shared::cta.b64 [bar], 1;
fence.proxy.async;
PUBLISH:
bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5], [map], 128;
@%p0 bra END;
FENCE
mbarrier.arrive.expect_tx.shared::cta.b64 %rd4, [bar], 256;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd5, {0, 3}], [bar];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
ret;
}
)";

Tensors run_edit(const std::string& fence) {
  std::string text = kEdit;
  text.replace(text.find("FENCE"), 5, fence);
  Machine machine(ptx::parse_target("sm_90a"));
  Launch launch;
  launch.program = machine.load(ptx::parse(text, "edit.ptx"));
  launch.entry = "kernel";
  launch.block.x = 32;
  std::vector<std::uint32_t> data(160);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::uint32_t>(i + 1);
  TensorMap map{.type = Type::u32, .rank = 2, .address = machine.allocate(640)};
  machine.write(map.address, std::as_bytes(std::span(data)));
  map.extents = {16, 10, 1, 1, 1};
  map.strides = {64, 0, 0, 0};
  map.box = {16, 8, 1, 1, 1};
  const EncodedTensorMap encoded = encode_tensor_map(map);
  const std::uint64_t pointers[] = {machine.allocate(256), machine.allocate(128)};
  launch.params.resize(144);
  std::memcpy(launch.params.data(), encoded.data(), 128);
  std::memcpy(launch.params.data() + 128, pointers, 16);
  Tensors out{machine.launch(launch), std::vector<std::uint32_t>(64)};
  machine.read(pointers[0], std::as_writable_bytes(std::span(out.to)));
  return out;
}

/// The edited box has 4 rows and begins at row 3 of 6: three are inside.
TEST(TensorMap, EditsAMapInPlace) {
  const Tensors t = run_edit("fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128;");
  for (const Diagnostic& d : t.report.findings)
    ADD_FAILURE() << to_string(d);
  for (std::uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(t.to[i], i < 48 ? 48 + i + 1 : 0) << i;
}

TEST(TensorMap, ReportsAnEditedMapWithoutItsFence) {
  const Tensors t = run_edit("");
  ASSERT_FALSE(t.report.findings.empty());
  EXPECT_EQ(t.report.findings[0].kind, Kind::proxy_fence);
  EXPECT_NE(t.report.findings[0].message.find(
                "which was edited with no fence.proxy.tensormap::generic.acquire since"),
            std::string::npos);
}

/// One thread copies `16` pixels of 4 words by im2col and stores them contiguously.
constexpr const char* kIm2col = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry kernel(.param .align 64 .b8 from[128], .param .u64 to)
{
.reg .b32 %r<8>;
.reg .b16 %h<4>;
.reg .b64 %rd<8>;
.reg .pred %p<4>;
.shared .align 1024 .b8 tile[256];
.shared .align 8 .b64 bar;
mov.b64 %rd0, from;
cvta.param.u64 %rd1, %rd0;
ld.param.u64 %rd2, [to];
mbarrier.init.shared::cta.b64 [bar], 1;
fence.proxy.async;
mbarrier.arrive.expect_tx.shared::cta.b64 %rd4, [bar], 256;
COPY
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ret;
}
)";

/// Pixels of 4 words, 5 wide and 4 high, of 2 images, for a 3 x 3 filter with padding 1.
constexpr std::int64_t kWidth = 5, kHeight = 4, kImages = 2;
TensorMap image_map() {
  TensorMap map{.type = Type::u32, .rank = 4};
  map.extents = {4, kWidth, kHeight, kImages, 1};
  map.strides = {16, 16 * kWidth, 16 * kWidth * kHeight, 0};
  map.im2col = Im2col{{-1, -1, 0}, {-1, -1, 0}, 4, 16};
  return map;
}

Tensors run_im2col(const std::string& copy, TensorMap map) {
  std::string text = kIm2col;
  text.replace(text.find("COPY"), 4, copy);
  Machine machine(ptx::parse_target("sm_90a"));
  Launch launch;
  launch.program = machine.load(ptx::parse(text, "im2col.ptx"));
  launch.entry = "kernel";
  std::vector<std::uint32_t> data(4 * kWidth * kHeight * kImages);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::uint32_t>(i + 1);
  map.address = machine.allocate(static_cast<std::int64_t>(4 * data.size()));
  machine.write(map.address, std::as_bytes(std::span(data)));
  const std::uint64_t to = machine.allocate(256);
  const EncodedTensorMap encoded = encode_tensor_map(map);
  launch.params.resize(136);
  std::memcpy(launch.params.data(), encoded.data(), 128);
  std::memcpy(launch.params.data() + 128, &to, 8);
  Tensors out{machine.launch(launch), std::vector<std::uint32_t>(64)};
  machine.read(to, std::as_writable_bytes(std::span(out.to)));
  return out;
}

const std::string kCopyIm2col =
    "mov.b16 %h0, 2;\nmov.b16 %h1, 0;\nmov.b32 %r1, 2;\nmov.b32 %r2, 1;\n"
    "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], "
    "[%rd1, {0, %r1, %r2, 0}], [bar], {%h0, %h1};";

/// The output pixels from (2, 1) on, which wrap at the ends of rows and of the image; the filter's
/// element (2, 0) of each, or zeros outside of the image.
TEST(TensorCopy, TakesTheColumnsOfAConvolution) {
  const Tensors t = run_im2col(kCopyIm2col, image_map());
  for (const Diagnostic& d : t.report.findings)
    ADD_FAILURE() << to_string(d);
  std::int64_t w = 2, h = 1, n = 0;
  for (std::size_t pixel = 0; pixel < 16; ++pixel) {
    const std::int64_t x = w + 2, y = h;
    const bool inside = x >= 0 && x < kWidth && y >= 0 && y < kHeight && n < kImages;
    for (std::size_t c = 0; c < 4; ++c) {
      const std::int64_t index =
          ((n * kHeight + y) * kWidth + x) * 4 + static_cast<std::int64_t>(c);
      EXPECT_EQ(t.to[pixel * 4 + c], inside ? static_cast<std::uint32_t>(index + 1) : 0U)
          << pixel << ": " << w << "," << h << "," << n;
    }
    if (++w <= kWidth - 2) continue;
    w = -1;
    if (++h <= kHeight - 2) continue;
    h = -1;
    ++n;
  }
}

TEST(TensorCopy, GivesModesThatDifferAsAFinding) {
  TensorMap tiled = image_map();
  tiled.im2col.reset();
  tiled.box = {4, 16, 1, 1, 1};
  const Tensors t = run_im2col(kCopyIm2col, tiled);
  ASSERT_FALSE(t.report.findings.empty());
  EXPECT_EQ(t.report.findings[0].message, "is in im2col mode, but its tensor map is tiled");
}

TEST(TensorCopy, GivesABoxThatSharedMemoryCannotHoldAsAFinding) {
  TensorMap map = image_map();
  map.im2col->pixels = 1024;
  const Tensors t = run_im2col(kCopyIm2col, map);
  ASSERT_FALSE(t.report.findings.empty());
  EXPECT_EQ(t.report.findings[0].message,
            "moves 16384 bytes, but the block has 264 of shared memory");
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
      {"channels", with([](TensorMap& m) {
         m.rank = 3, m.im2col = Im2col{{}, {}, 257, 1};
       }),
       "tensor map: 257 channels of a pixel; use 1 to 256"},
      {"pixels", with([](TensorMap& m) {
         m.rank = 3, m.im2col = Im2col{{}, {}, 8, 1025};
       }),
       "tensor map: 1025 pixels of a copy; use 1 to 1024"},
      {"corner", with([](TensorMap& m) {
         m.rank = 4, m.im2col = Im2col{{-129}, {}, 8, 1};
       }),
       "tensor map: corner -129 of dimension 1; use -128 to 127"},
      {"im2col of a matrix", with([](TensorMap& m) {
         m.im2col = Im2col{{}, {}, 8, 1};
       }),
       "tensor map: im2col mode and rank 2; use 3 to 5"},
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

// SPDX-License-Identifier: Apache-2.0
// Rows more than 2^31 elements apart: offsets of 64 bits in every operator on rows. The emulator
// holds only the pages that are touched.
#include "kernels/fused_add_rms_norm/fused_add_rms_norm.h"
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/pooling/pooling.h"
#include "kernels/qk_norm_rope/qk_norm_rope.h"
#include "kernels/quantize/quantize.h"
#include "kernels/reshape_and_cache/reshape_and_cache.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope_table/rope_table.h"
#include "kernels/row_gather/row_gather.h"
#include "kernels/row_gather/row_scatter.h"
#include "kernels/strided_copy/strided_copy.h"
#include "kernels/tile_copy/tile_copy.h"
#include "kernels/transpose/transpose.h"
#include "operator_fixture.h"

#include <array>

namespace tilewright {
namespace {

using test::Options;
using test::Placement;

/// One whose rows keep the alignment of 16 bytes, and one whose rows do not.
constexpr std::int64_t kPaddings[] = {(std::int64_t{1} << 31) + 64, (std::int64_t{1} << 31) + 2};

class FarRows : public test::OperatorTest {
 protected:
  void SetUp() override {
    OperatorTest::SetUp();
    if (device.kind() != DeviceKind::emulated) GTEST_SKIP() << "takes memory that is never touched";
  }
  void far(const Operator& op, const std::vector<Array>& inputs, const Options& options = {}) {
    for (std::int64_t padding : kPaddings) {
      SCOPED_TRACE(std::string(op.schema.name) + " " + std::to_string(padding));
      run(op, inputs, options, Placement{.row_padding = padding});
    }
  }
  /// As numbers, and as every kind of codes.
  void far_with_codes(const Operator& op, const std::vector<Array>& inputs,
                      const Options& options = {}) {
    far(op, inputs, options);
    for (const char* quant : {"fp8_token", "fp8_block", "mxfp8", "mxfp4"}) {
      Options all = options;
      all.emplace_back("quant", quant);
      far(op, inputs, all);
    }
  }
  static Array one(const char* name, double value) {
    return make_array(name, f32, {1}, std::array{value});
  }
};

TEST_F(FarRows, AreNormalised) {
  const Array x = random("x", bf16, {3, 256}), w = random("w", bf16, {256});
  far_with_codes(rms_norm_operator(), {x, w});
  far_with_codes(fused_add_rms_norm_operator(), {x, random("residual", f32, {3, 256}), w});
  far_with_codes(layer_norm_operator(), {x, w, random("bias", bf16, {256})});
  const Array longer = random("x", bf16, {3, 70000});
  far(layer_norm_operator(), {longer});
  far(rms_norm_operator(), {longer}, {{"quant", "fp8_token"}});
}

TEST_F(FarRows, AreActivated) {
  const Array x = random("x", bf16, {3, 512});
  far_with_codes(silu_and_mul_operator(), {x});
  far_with_codes(swigluoai_and_mul_operator(), {x}, {{"layout", "interleaved"}});
  far_with_codes(relu2_operator(), {x});
  far(silu_and_mul_operator(), {random("x", bf16, {3, 132000})}, {{"quant", "fp8_token"}});
}

TEST_F(FarRows, AreQuantisedAndExpanded) {
  for (const char* format : {"fp8_token", "fp8_block", "fp8_block2d", "mxfp8", "mxfp4"}) {
    const std::vector<Array> codes =
        run(quantize_operator(), {random("x", f16, {3, 256})}, {{"format", format}});
    far(quantize_operator(), {random("x", f16, {3, 256})}, {{"format", format}});
    far(dequantize_operator(), codes, {{"format", format}});
  }
  far(quantize_operator(), {random("x", f32, {3, 66048})});
  for (std::int64_t h : {264, 8193}) {
    const Array x = random("x", bf16, {3, h});
    far(quantize_operator(), {x, one("scale", 0.01)}, {{"format", "fp8_tensor"}});
    far(quantize_operator(), {x}, {{"format", "fp8_tensor"}});
  }
  far(quantize_operator(), {random("x", bf16, {3, 64}), one("encode_scale", 600)},
      {{"format", "nvfp4"}});
}

TEST_F(FarRows, OfHeadsAreNormalisedAndTurned) {
  const Array q = random("q", bf16, {3, 2, 64}), k = random("k", bf16, {3, 1, 64});
  const Array positions = make_array("positions", s64, {3}, std::array{0.0, 5.0, 2.0});
  const Array table = random("cos_sin", f32, {6, 64});
  far(qk_norm_operator(), {q, k});
  far(qk_norm_rope_operator(), {q, k, positions, table});
  far(qk_norm_rope_operator(), {q, k, positions, table, random("v", bf16, {3, 1, 64})});
  far(rope_operator(), {q, k, positions, table}, {{"style", "interleaved"}});
  far(rope_table_operator(), {}, {{"rotary_dim", "64"}, {"max_position", "5"}});
}

TEST_F(FarRows, AreGatheredScatteredAndPooled) {
  const Array ids = make_array("ids", s64, {4}, std::array{2.0, -1.0, 0.0, 1.0});
  far(gather_rows_operator(), {random("src", bf16, {3, 128}), ids});
  far(embedding_operator(), {random("table", bf16, {3, 128}), ids}, {{"scale", "2"}});
  far(embedding_operator(),
      {random("table", bf16, {3, 128}), ids, random("position_table", f32, {3, 128}),
       make_array("positions", s64, {4}, std::array{1.0, 2.0, 0.0, 2.0})});
  for (std::int64_t h : {128, 70000})
    far(embedding_operator(), {random("table", bf16, {3, h}), ids}, {{"norm", "true"}});
  far(scatter_rows_operator(), {random("src", bf16, {4, 128}), ids, random("dst", bf16, {3, 128})});
  const Array bounds = make_array("cu_seqlens", s32, {3}, std::array{0.0, 1.0, 3.0});
  for (const char* mode : {"mean", "last", "cls"}) {
    for (std::int64_t h : {128, 40000}) {
      far(pooling_operator(), {random("hidden", bf16, {3, h}), bounds},
          {{"mode", mode}, {"normalize", "true"}});
    }
  }
}

TEST_F(FarRows, AreCopiedTransposedAndCached) {
  for (Type type : {u8, bf16, f32}) {
    far(tile_copy_operator(), {random("src", type, {3, 200})});
    far(strided_copy_operator(), {random("src", type, {3, 200})});
    far(transpose_operator(), {random("src", type, {3, 130})});
  }
  far(strided_copy_operator(), {random("src", f32, {3, 201})}, {{"out_type", "bf16"}});
  const Array slots = make_array("slot_mapping", s64, {3}, std::array{5.0, 0.0, 3.0});
  for (const char* cache : {"nhd", "hnd"}) {
    const std::vector<std::int64_t> shape{3, 2, 2, 64};
    far(reshape_and_cache_operator(),
        {random("key", bf16, {3, 2, 64}), random("value", bf16, {3, 2, 64}), slots,
         random("key_cache", bf16, shape), random("value_cache", bf16, shape)},
        {{"layout", cache}});
  }
}

}  // namespace
}  // namespace tilewright

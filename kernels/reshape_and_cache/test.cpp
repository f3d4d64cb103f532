// SPDX-License-Identifier: Apache-2.0
// reshape_and_cache against its reference, bit for bit: layouts, types, scales, skipped slots.
#include "kernels/reshape_and_cache/reshape_and_cache.h"
#include "operator_fixture.h"

#include <array>
#include <cmath>
#include <limits>
#include <tuple>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

struct Sizes {
  std::int64_t tokens = 5, heads = 2, d = 64, dv = 64, pages = 4, page_size = 8;
};

class ReshapeAndCache : public OperatorTest {
 protected:
  const Operator& op = reshape_and_cache_operator();

  /// Slots from the last one down, three apart.
  static Array slots(const Sizes& s, Type type = s64) {
    std::vector<double> values;
    for (std::int64_t t = 0; t < s.tokens; ++t)
      values.push_back(static_cast<double>(s.pages * s.page_size - 1 - 3 * t));
    return make_array("slot_mapping", type, {s.tokens}, values);
  }
  static std::vector<std::int64_t> shape(const Sizes& s, const std::string& layout, bool keys) {
    const std::int64_t d = keys ? s.d : s.dv;
    if (layout == "nhd") return {s.pages, s.page_size, s.heads, d};
    if (layout == "hnd") return {s.pages, s.heads, s.page_size, d};
    if (keys) return {s.pages, s.heads, d / 8, s.page_size, 8};
    return {s.pages, s.heads, d, s.page_size};
  }
  static std::vector<Array> inputs(const Sizes& s, Type type = bf16, Type cache = bf16,
                                   const std::string& layout = "nhd") {
    return {random("key", type, {s.tokens, s.heads, s.d}, 20, 1),
            random("value", type, {s.tokens, s.heads, s.dv}, 20, 2), slots(s),
            random("key_cache", cache, shape(s, layout, true), 1, 3),
            random("value_cache", cache, shape(s, layout, false), 1, 4)};
  }
  static Array scale(const char* name, std::vector<double> values) {
    return make_array(name, f32, {static_cast<std::int64_t>(values.size())}, values);
  }
};

TEST_F(ReshapeAndCache, CopiesBitsInEveryLayoutAndType) {
  for (const char* layout : {"nhd", "hnd", "v0"}) {
    for (Type type : {bf16, f16, f32, e4m3, e5m2})
      run(op, inputs({}, type, type, layout), {{"layout", layout}});
  }
}

TEST_F(ReshapeAndCache, IsRightInEveryConfiguration) {
  run_candidates(op, inputs({.tokens = 9}), {{"layout", "nhd"}});
}

TEST_F(ReshapeAndCache, TakesOddSizes) {
  for (Sizes s : {Sizes{1, 1, 1, 1},
                  {3, 5, 7, 100},
                  {3, 8, 72, 80},
                  {2, 1, 512, 64, 5, 3},
                  {7, 3, 192, 128, 30, 1}}) {
    run(op, inputs(s));
    run(op, inputs(s, bf16, bf16, "hnd"), {{"layout", "hnd"}});
  }
}

TEST_F(ReshapeAndCache, TakesStridesAlignmentsAndBothIndices) {
  for (std::int64_t padding : {1, 2, 8}) {
    for (std::int64_t offset : {0, 1, 4}) {
      run(op, inputs({}), {}, Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
  std::vector<Array> given = inputs({});
  given[2] = slots({}, s32);
  run(op, given);
}

TEST_F(ReshapeAndCache, SkipsPaddingAndCountsSlotsBeyondTheCache) {
  std::vector<Array> given = inputs({});
  given[2] = make_array("slot_mapping", s64, {5}, std::vector<double>{-1, 31, 32, 9e15, -7e15});
  given.push_back(make_array("skipped", u32, {1}, std::vector<double>{40}));
  run(op, given);
}

/// Keys of padded batches are longer than the slots.
TEST_F(ReshapeAndCache, TakesTheTokensOfTheSlotsAlone) {
  std::vector<Array> given = inputs({});
  given[2] = slots({.tokens = 2});
  run(op, given);
}

TEST_F(ReshapeAndCache, DividesByScalesForEightBitCaches) {
  for (Type type : {bf16, f16, f32}) {
    for (Type cache : {e4m3, e5m2}) {
      std::vector<Array> given = inputs({}, type, cache);
      run(op, given);
      given.push_back(scale("k_scale", {0.37}));
      given.push_back(scale("v_scale", {3, 0.01}));  // one a head
      run(op, given);
    }
  }
}

TEST_F(ReshapeAndCache, SaturatesAndKeepsNan) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (Type cache : {e4m3, e5m2}) {
    const Sizes one{.tokens = 1, .heads = 1, .d = 8, .dv = 8};
    std::vector<Array> given = inputs(one, f32, cache);
    given[0] = make_array("key", f32, {1, 1, 8},
                          std::vector<double>{1e30, -1e30, kInf, -kInf, NAN, 1e-40, -0.0, 448});
    run(op, given);
    given.push_back(scale("k_scale", {1}));
    given.push_back(scale("v_scale", {1}));
    for (double divisor : {2.0, 3.0, 0x1p-92, 0x1.fp99, 0x1p-93, 0x1p101, -1.5, 0.0, kInf}) {
      given[5] = scale("k_scale", {divisor});
      run(op, given);
    }
  }
}

/// Significands of 24 bits whose quotients lie beside the middle of two numbers of f32, one of
/// which is a boundary of codes, an odd number of `digits` bits: by 16 / scale of half a unit.
std::vector<double> beside_boundaries(std::int64_t scale, int digits) {
  constexpr std::int64_t kLeast = 1 << 23, kMost = 1 << 24, kNear = 16;
  std::vector<double> found;
  for (std::int64_t odd = (1 << (digits - 1)) | 1; odd < 1 << digits; odd += 2) {
    for (int shift : {24, 25}) {
      for (std::int64_t beside : {-1, 1}) {
        const std::int64_t middle = (odd << (25 - digits)) + beside;
        const std::int64_t x = (middle * scale + (std::int64_t{1} << (shift - 1))) >> shift;
        const std::int64_t distance = (x << shift) - middle * scale;
        if (x < kLeast || x >= kMost || std::abs(distance) > kNear) continue;
        found.push_back(std::ldexp(static_cast<double>(x), shift - (25 - digits)));
      }
    }
  }
  return found;
}

// The error of the products is less than 16 / scale of half a unit, so that only these quotients
// could be rounded wrongly: where scales are as near to multiples of 2^20.
TEST_F(ReshapeAndCache, DividesExactlyBesideBoundariesOfCodes) {
  constexpr std::int64_t kWidth = 32;
  for (const auto& [cache, most_digits, least] :
       {std::tuple(e4m3, 5, 0x1p-10), std::tuple(e5m2, 4, 0x1p-17)}) {
    std::vector<double> scales, elements;
    for (std::int64_t multiple = 8; multiple <= 16; ++multiple) {
      for (std::int64_t scale = (multiple << 20) - 16; scale <= (multiple << 20) + 16; ++scale) {
        if (scale < 1 << 23 || scale >= 1 << 24) continue;
        scales.push_back(static_cast<double>(scale));
        const std::size_t end = scales.size() * kWidth;
        for (int digits = 1; digits <= most_digits; ++digits) {
          for (double x : beside_boundaries(scale, digits))
            elements.push_back(x * least);
        }
        ASSERT_LE(elements.size(), end);
        elements.resize(end, static_cast<double>(scale));
      }
    }
    const auto heads = static_cast<std::int64_t>(scales.size());
    std::vector<Array> given =
        inputs({.tokens = 1, .heads = heads, .d = kWidth, .dv = 8}, f32, cache);
    given[0] = make_array("key", f32, {1, heads, kWidth}, elements);
    given.push_back(scale("k_scale", scales));
    given.push_back(scale("v_scale", {1}));
    run(op, given);
  }
}

/// The latents of multi-head latent attention and their rotary parts: two parts of each row.
TEST_F(ReshapeAndCache, WritesTwoPartsOfOneRow) {
  constexpr std::int64_t kLatent = 32, kRope = 8, kWidth = kLatent + kRope, kSlots = 12;
  const Array latent = random("key", bf16, {2, 1, kLatent}),
              rope = random("value", bf16, {2, 1, kRope});
  Buffer cache(device, kSlots * kWidth * 2), source(device, 1024), slot(device, 16);
  cache.fill(std::byte{0});
  source.upload(latent.bytes);
  source.upload(rope.bytes, 512);
  const Array where = make_array("slot_mapping", s64, {2}, std::vector<double>{7, 2});
  slot.upload(where.bytes);
  auto part = [&](std::int64_t first, std::int64_t count) {
    const std::int64_t shape[] = {3, 4, 1, count}, stride[] = {4 * kWidth, kWidth, kWidth, 1};
    return make_view(cache.address() + static_cast<std::uint64_t>(2 * first), bf16, shape, stride);
  };
  const std::int64_t latent_shape[] = {2, 1, kLatent}, rope_shape[] = {2, 1, kRope}, two[] = {2};
  reshape_and_cache(stream, {.key = make_view(source.address(), bf16, latent_shape),
                             .value = make_view(source.address() + 512, bf16, rope_shape),
                             .slot_mapping = make_view(slot.address(), s64, two),
                             .key_cache = part(0, kLatent),
                             .value_cache = part(kLatent, kRope)});
  stream.synchronize();
  Array out = make_array("cache", bf16, {kSlots, kWidth});
  out.bytes = download<std::byte>(cache);
  const std::vector<double> values = to_doubles(out), latents = to_doubles(latent),
                            ropes = to_doubles(rope);
  for (std::int64_t s = 0; s < kSlots; ++s) {
    for (std::int64_t i = 0; i < kWidth; ++i) {
      double expected = 0;
      const std::int64_t token = s == 7 ? 0 : s == 2 ? 1 : -1;
      if (token >= 0) {
        expected = i < kLatent ? latents[static_cast<std::size_t>(token * kLatent + i)]
                               : ropes[static_cast<std::size_t>(token * kRope + i - kLatent)];
      }
      EXPECT_EQ(values[static_cast<std::size_t>(s * kWidth + i)], expected) << s << ", " << i;
    }
  }
}

/// 64,000 pages of 16 slots with 32 heads of 128: the last page begins beyond 2^31 elements
/// (vllm#1486). The page stride alone is that long here.
TEST_F(ReshapeAndCache, CountsElementsInSixtyFourBits) {
  constexpr std::int64_t kPage = std::int64_t{1} << 32;  // elements between pages
  const std::int64_t shape[] = {3, 2, 1, 8}, stride[] = {kPage, 8, 8, 1};
  const std::int64_t source[] = {1, 1, 8}, one[] = {1};
  const View cache = make_view(std::uint64_t{1} << 36, bf16, shape, stride);
  const View other = make_view(std::uint64_t{1} << 40, bf16, shape, stride);
  const ReshapeAndCachePlan plan =
      plan_reshape_and_cache(device.properties(), {.key = make_view(4096, bf16, source),
                                                   .value = make_view(8192, bf16, source),
                                                   .slot_mapping = make_view(16384, s64, one),
                                                   .key_cache = cache,
                                                   .value_cache = other});
  EXPECT_NE(to_string(plan.args.key_cache).find("?{div=8}"), std::string::npos)
      << "the stride of pages is a 64-bit parameter: " << to_string(plan.args.key_cache);
}

TEST_F(ReshapeAndCache, LaunchesNothingForNoTokens) {
  std::vector<Array> given = inputs({});
  given[2] = make_array("slot_mapping", s64, {0}, std::vector<double>{});
  run(op, given);
}

TEST_F(ReshapeAndCache, RefusesTwoTokensInOnePlace) {
  std::vector<Array> given = inputs({});
  named(given, "slot_mapping") =
      make_array("slot_mapping", s64, {5}, std::array{3.0, -1.0, 7.0, -1.0, 3.0});
  EXPECT_EQ(refusal(op, given),
            "reshape_and_cache: slot_mapping[0] and slot_mapping[4] are 3; each token must have a "
            "place of its own");
}

TEST_F(ReshapeAndCache, CountsTokensForOnePlaceBeyondTheCache) {
  std::vector<Array> given = inputs({});
  named(given, "slot_mapping") =
      make_array("slot_mapping", s64, {5}, std::array{32.0, 32.0, 1.0, -1.0, 9e15});
  given.push_back(make_array("skipped", u32, {1}, std::vector<double>{0}));
  run(op, given);  // three are counted
}

TEST_F(ReshapeAndCache, RefusesCachesOfDifferentPages) {
  std::vector<Array> given = inputs({});
  const std::string start = "reshape_and_cache: key_cache has 4 pages of 8 tokens and value_cache ";
  named(given, "value_cache") = random("value_cache", bf16, {2, 8, 2, 64});
  EXPECT_EQ(refusal(op, given), start + "2 of 8; they must be equal");
  named(given, "value_cache") = random("value_cache", bf16, {8, 4, 2, 64});
  EXPECT_EQ(refusal(op, given), start + "8 of 4; they must be equal");
}

TEST_F(ReshapeAndCache, RefusesWhatItCannotWrite) {
  std::vector<Array> given = inputs({});
  auto with = [&](std::size_t i, Array array) {
    std::vector<Array> all = given;
    all[i] = std::move(array);
    return all;
  };
  EXPECT_EQ(refusal(op, with(3, random("key_cache", f16, {4, 8, 2, 64}))),
            "reshape_and_cache: key_cache has type f16; it must be e4m3, e5m2 or key's type bf16");
  EXPECT_EQ(refusal(op, with(3, random("key_cache", bf16, {4, 8, 64}))),
            "reshape_and_cache: key_cache is bf16[4,8,64]; its shape must be [pages, page size, "
            "heads, D]");
  EXPECT_EQ(refusal(op, with(4, random("value_cache", bf16, {4, 8, 2, 32}))),
            "reshape_and_cache: value is bf16[5,2,64] and value_cache has 2 heads of 32 elements; "
            "they must be equal");
  EXPECT_EQ(refusal(op, with(2, slots({.tokens = 6}))),
            "reshape_and_cache: key is bf16[5,2,64] and slot_mapping s64[6]; it must have as many "
            "tokens at least");
  given.push_back(scale("k_scale", {1}));
  EXPECT_EQ(refusal(op, given),
            "reshape_and_cache: k_scale is f32[1], but the cache has key's type, whose bits are "
            "copied");
  given = inputs({}, bf16, e4m3);
  given.push_back(scale("k_scale", {1, 2, 3}));
  EXPECT_EQ(refusal(op, given),
            "reshape_and_cache: k_scale is f32[3]; it must be f32[1] or f32[2]");
}

/// One tensor [pages, 2, page size, heads, D] for both.
TEST_F(ReshapeAndCache, TakesCachesWhosePagesTakeTurns) {
  const std::int64_t shape[] = {4, 8, 2, 64}, stride[] = {2048, 128, 64, 1};
  const std::int64_t source[] = {1, 2, 64}, one[] = {1};
  auto plan = [&](std::uint64_t values) {
    return plan_reshape_and_cache(device.properties(),
                                  {.key = make_view(1 << 20, bf16, source),
                                   .value = make_view(2 << 20, bf16, source),
                                   .slot_mapping = make_view(3 << 20, s64, one),
                                   .key_cache = make_view(4096, bf16, shape, stride),
                                   .value_cache = make_view(4096 + values, bf16, shape, stride)});
  };
  EXPECT_EQ(plan(2048).config.parts[1].vector_elems, 8);
  EXPECT_THROW(plan(2 * 1024 - 128), Error);
}

TEST_F(ReshapeAndCache, RefusesCachesThatOverlap) {
  const std::int64_t shape[] = {4, 8, 2, 64}, source[] = {1, 2, 64}, one[] = {1};
  const View cache = make_view(4096, bf16, shape);
  try {
    plan_reshape_and_cache(device.properties(), {.key = make_view(1 << 20, bf16, source),
                                                 .value = make_view(2 << 20, bf16, source),
                                                 .slot_mapping = make_view(3 << 20, s64, one),
                                                 .key_cache = cache,
                                                 .value_cache = cache});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "reshape_and_cache: key_cache and value_cache overlap; they must be apart");
  }
}

}  // namespace
}  // namespace tilewright

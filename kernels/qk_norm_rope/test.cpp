// SPDX-License-Identifier: Apache-2.0
// qk_norm, qk_norm_rope and rope against their float64 reference, in place, packed and apart.
#include "kernels/qk_norm_rope/qk_norm_rope.h"
#include "kernels/reshape_and_cache/reshape_and_cache.h"
#include "operator_fixture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

struct Heads {
  std::int64_t tokens = 3, q = 4, k = 2, d = 128;
};

class QkNormRope : public OperatorTest {
 protected:
  static std::vector<Array> heads(Type type, Heads h) {
    return {random("q", type, {h.tokens, h.q, h.d}, 2, 1),
            random("k", type, {h.tokens, h.k, h.d}, 3, 2)};
  }
  static std::vector<Array> with_weights(Type type, Heads h, Type weight) {
    std::vector<Array> all = heads(type, h);
    all.push_back(random("q_weight", weight, {h.d}, 1, 3));
    all.push_back(random("k_weight", weight, {h.d}, 1, 4));
    return all;
  }
  static Array table(Type type, std::int64_t rows, std::int64_t width) {
    std::vector<double> values;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < width; ++i) {
        double step =
            std::pow(1e4, -2.0 * static_cast<double>(i % (width / 2)) / static_cast<double>(width));
        double angle = static_cast<double>(row) * step;
        values.push_back(i < width / 2 ? std::cos(angle) : std::sin(angle));
      }
    }
    return make_array("cos_sin", type, {rows, width}, values);
  }
  static std::vector<Array> with_table(std::vector<Array> all, std::int64_t width, Type type = f32,
                                       Type index = s64) {
    std::vector<double> positions;
    for (std::int64_t i = 0; i < all[0].shape[0]; ++i)
      positions.push_back(static_cast<double>((i * 7) % 50));
    all.push_back(make_array("positions", index, {all[0].shape[0]}, positions));
    all.push_back(table(type, 50, width));
    return all;
  }

  const Operator& norm = qk_norm_operator();
  const Operator& norm_rope = qk_norm_rope_operator();
  const Operator& rope = rope_operator();
};

TEST_F(QkNormRope, IsRightInEveryConfiguration) {
  Heads h{.tokens = 5, .q = 4, .k = 2, .d = 64};
  run_candidates(norm_rope, with_table(with_weights(bf16, h, bf16), 64), {{"style", "neox"}});
  run_candidates(rope, with_table(heads(bf16, h), 32), {{"style", "interleaved"}});
}

TEST_F(QkNormRope, NormalisesHeadsOfAllSizes) {
  for (std::int64_t d : {1, 7, 32, 64, 72, 80, 96, 128, 192, 256, 512})
    run(norm, with_weights(bf16, {.d = d}, bf16));
}

TEST_F(QkNormRope, NormalisesOverTypes) {
  for (Type type : {bf16, f16, f32}) {
    for (Type weight : {type, f32})
      run(norm, with_weights(type, {.d = 128}, weight));
  }
}

TEST_F(QkNormRope, TakesAnyNumbersOfHeads) {
  for (Heads h : {Heads{1, 1, 1}, {5, 5, 3}, {7, 32, 4}, {3, 0, 2}, {3, 5, 0}, {129, 2, 1}})
    run(norm, with_weights(bf16, h, bf16));
}

TEST_F(QkNormRope, TakesWeightsSeparately) {
  std::vector<Array> all = with_weights(bf16, {}, bf16);
  run(norm, {all[0], all[1]});
  run(norm, {all[0], all[1], all[2]}, {{"weight_bias", "1"}});
  run(norm, {all[0], all[1], all[3]}, {{"weight_bias", "1"}, {"eps", "1e-5"}});
}

TEST_F(QkNormRope, RotatesHalvesAndNeighbours) {
  for (const char* style : {"neox", "interleaved"}) {
    for (Type type : {bf16, f16, f32}) {
      for (std::int64_t d : {64, 128, 256}) {
        run(rope, with_table(heads(type, {.d = d}), d), {{"style", style}});
        run(norm_rope, with_table(with_weights(type, {.d = d}, type), d), {{"style", style}});
      }
    }
  }
}

TEST_F(QkNormRope, RotatesAPartOfTheHead) {
  for (const char* style : {"neox", "interleaved"}) {
    for (std::int64_t width : {2, 6, 20, 32, 64, 72, 96}) {
      run(norm_rope, with_table(with_weights(bf16, {.d = 96}, bf16), width), {{"style", style}});
      run(rope, with_table(heads(f32, {.d = 100}), width), {{"style", style}});
    }
  }
}

TEST_F(QkNormRope, ComputesAngles) {
  const auto with_frequencies = [](std::vector<Array> all, std::int64_t width, Type index) {
    const std::vector<double> positions{0, 131071, 1048575, -1, 8191};
    all.push_back(make_array("positions", index, {5}, positions));
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < width / 2; ++i) {
      frequencies.push_back(
          std::pow(5e5, -2.0 * static_cast<double>(i) / static_cast<double>(width)));
    }
    all.push_back(make_array("inv_freq", f32, {width / 2}, frequencies));
    return all;
  };
  for (const char* style : {"neox", "interleaved"}) {
    for (Type type : {bf16, f32}) {
      const Heads h{.tokens = 5, .d = 96};
      for (std::int64_t width : {2, 6, 32, 96}) {
        run(rope, with_frequencies(heads(type, h), width, s32), {{"style", style}});
        run(norm_rope, with_frequencies(with_weights(type, h, type), width, s64),
            {{"style", style}, {"attention_factor", "1.25"}});
      }
    }
  }
  run_candidates(rope, with_frequencies(heads(bf16, {.tokens = 5, .d = 64}), 64, s64));
}

TEST_F(QkNormRope, TakesOneSourceOfAngles) {
  std::vector<Array> both = with_table(heads(bf16, {}), 64);
  std::vector<Array> none = both;
  remove(none, "cos_sin");
  const std::string why =
      "rope: positions and either cos_sin or inv_freq are needed for the rotation";
  EXPECT_EQ(refusal(rope, none), why);
  EXPECT_EQ(refusal(rope, both, {{"attention_factor", "2"}}),
            "rope: attention_factor=2 without inv_freq");
  both.push_back(random("inv_freq", f32, {32}));
  EXPECT_EQ(refusal(rope, both), why);
  none.push_back(random("inv_freq", f32, {65}));
  EXPECT_EQ(
      refusal(rope, none),
      "rope: inv_freq is f32[65]; it must have 1 to 64 contiguous elements, half of D at most");
}

TEST_F(QkNormRope, TakesTablesAndPositionsOfAllTypes) {
  for (Type type : {bf16, f16, f32}) {
    for (Type index : {s32, s64})
      run(norm_rope, with_table(heads(bf16, {}), 64, type, index));
  }
}

TEST_F(QkNormRope, RoundsBetweenIfAsked) {
  std::vector<Array> given = with_table(with_weights(bf16, {}, bf16), 128);
  Array kept = run(norm_rope, given).front();
  Array rounded = run(norm_rope, given, {{"between", "round"}}).front();
  EXPECT_NE(kept.bytes, rounded.bytes);
  // Equal to the two launches that it replaces, bit for bit.
  std::vector<Array> normed = run(norm, {given[0], given[1], given[2], given[3]});
  normed[0].name = "q";
  normed[1].name = "k";
  EXPECT_EQ(run(rope, {normed[0], normed[1], given[4], given[5]}).front().bytes, rounded.bytes);
}

TEST_F(QkNormRope, TurnsByAPlainFunction) {
  const std::vector<Array> given = with_table(heads(f32, {}), 64);  // q, k, positions, cos_sin
  const std::vector<Array> turned = run(rope, given);
  std::vector<Buffer> memory;
  std::vector<View> views;
  for (const Array& array : given) {
    memory.emplace_back(device, static_cast<std::int64_t>(array.bytes.size()));
    memory.back().upload(array.bytes);
    views.push_back(make_view(memory.back().address(), array.type, array.shape));
  }
  tilewright::rope(stream, {.q = views[0],
                            .k = views[1],
                            .positions = views[2],
                            .cos_sin = views[3],
                            .q_out = views[0],
                            .k_out = views[1]});
  stream.synchronize();
  for (std::size_t i = 0; i < turned.size(); ++i)
    EXPECT_EQ(download<std::byte>(memory[i]), turned[i].bytes) << turned[i].name;
  EXPECT_EQ(turned.size(), 2U);
}

/// The caches after `given`, and slots that skip a token.
std::vector<Array> with_cache(std::vector<Array> given, const std::string& layout = "nhd",
                              Type index = s64, std::optional<Type> codes = {}) {
  const std::int64_t tokens = given[0].shape[0], heads = given[1].shape[1], d = given[1].shape[2];
  std::vector<double> slots;
  for (std::int64_t t = 0; t < tokens; ++t)
    slots.push_back(static_cast<double>(t % 4 == 1 ? -1 : 11 - 2 * t));
  std::vector<std::int64_t> shape{4, 3, heads, d};
  if (layout == "hnd") std::swap(shape[1], shape[2]);
  const Type type = codes.value_or(given[0].type);
  given.push_back(make_array("slot_mapping", index, {tokens}, slots));
  for (const char* cache : {"key_cache", "value_cache"})
    given.push_back(make_array(cache, type, shape));
  Array v = given[1];  // as good as any
  v.name = "v";
  given.push_back(v);
  return given;
}

TEST_F(QkNormRope, WritesKeysAndValuesToACache) {
  for (const char* layout : {"nhd", "hnd"}) {
    for (const char* style : {"neox", "interleaved"}) {
      for (Heads h : {Heads{.d = 64}, {5, 5, 3, 96}, {2, 0, 2, 128}, {3, 4, 2, 7}}) {
        if (h.d == 7 && style[0] == 'i') continue;  // takes even heads
        const std::int64_t width = h.d == 7 ? 6 : 64;
        run(norm_rope, with_cache(with_table(with_weights(bf16, h, bf16), width), layout),
            {{"style", style}, {"cache_layout", layout}});
      }
    }
  }
}

std::vector<Array> with_scales(std::vector<Array> given, std::int64_t heads) {
  std::vector<double> scales;
  for (std::int64_t h = 0; h < heads; ++h)
    scales.push_back(0.01 * static_cast<double>(h + 1));
  given.push_back(make_array("k_scale", f32, {heads}, scales));
  given.push_back(make_array("v_scale", f32, {1}, std::vector<double>{0.003}));
  return given;
}

TEST_F(QkNormRope, WritesCodesToACache) {
  for (Type codes : {e4m3, e5m2}) {
    for (Heads h : {Heads{.d = 64}, {5, 5, 3, 96}, {2, 0, 2, 128}, {3, 4, 2, 7}}) {
      const std::int64_t width = h.d == 7 ? 6 : 64;
      const std::vector<Array> given =
          with_cache(with_table(with_weights(bf16, h, bf16), width), "hnd", s64, codes);
      run(norm_rope, given, {{"cache_layout", "hnd"}});
      run(norm_rope, with_scales(given, h.k), {{"cache_layout", "hnd"}});
    }
  }
}

TEST_F(QkNormRope, WritesTheCodesOfReshapeAndCache) {
  for (Type type : {bf16, f16, f32}) {
    std::vector<Array> given =
        with_scales(with_cache(with_table(heads(type, {.d = 64}), 64), "nhd", s64, e4m3), 2);
    Buffer memory(device, 1 << 20);
    Arguments arguments(norm_rope.schema);
    std::int64_t at = 0;
    std::vector<std::pair<std::string, std::int64_t>> places;
    for (const Array& array : given) {
      memory.upload(array.bytes, at);
      arguments.set(array.name, make_view(memory.address() + static_cast<std::uint64_t>(at),
                                          array.type, array.shape));
      places.emplace_back(array.name, at);
      at += 65536;
    }
    norm_rope.launch(device, stream, arguments);
    stream.synchronize();
    auto download_as = [&](const std::string& from, const std::string& as) {
      const auto place = std::find_if(places.begin(), places.end(),
                                      [&](const auto& each) { return each.first == from; });
      const auto index = static_cast<std::size_t>(place - places.begin());
      Array array = given[index];
      array.name = as;
      memory.download(array.bytes, place->second);
      return array;
    };
    auto input = [&](const char* name) {
      return *std::find_if(given.begin(), given.end(),
                           [&](const Array& each) { return each.name == name; });
    };
    std::vector<Array> rest{download_as("k", "key"), download_as("v", "value")};
    for (const char* name : {"slot_mapping", "k_scale", "v_scale", "key_cache", "value_cache"})
      rest.push_back(input(name));
    HostTensors right;  // reshape_and_cache is exact
    for (const Array& array : rest)
      right.set(array);
    Arguments of_cache(reshape_and_cache_operator().schema);
    reshape_and_cache_operator().reference(of_cache, right);
    for (const char* cache : {"key_cache", "value_cache"})
      EXPECT_EQ(download_as(cache, cache).bytes, right.at(cache).bytes) << cache;
  }
}

TEST_F(QkNormRope, CopiesValuesWithoutACache) {
  for (Type type : {bf16, f16, f32}) {
    for (std::int64_t d : {2, 6, 64, 72, 128, 256}) {
      for (const Heads& h : {Heads{.d = d}, Heads{.tokens = 40, .q = 5, .k = 1, .d = d},
                             Heads{.q = 0, .d = d}, Heads{.k = 0, .d = d}}) {
        std::vector<Array> given = with_table(with_weights(type, h, f32), d >= 64 ? 32 : 2);
        given.push_back(random("v", type, {h.tokens, h.k, h.d}, 1, 9));
        const std::vector<Array> out = run(norm_rope, given);
        EXPECT_EQ(out.back().name, "v_out");
        EXPECT_EQ(out.back().bytes, given.back().bytes);
        given.pop_back();  // the others are as they were
        EXPECT_EQ(run(norm_rope, given).front().bytes, out.front().bytes);
      }
    }
  }
}

TEST_F(QkNormRope, CopiesValuesOfAnyAlignment) {
  std::vector<Array> given = with_table(with_weights(bf16, {.d = 64}, bf16), 32);
  given.push_back(random("v", bf16, {3, 2, 64}, 1, 9));
  for (const char* style : {"neox", "interleaved"}) {
    for (std::int64_t padding : {1, 2, 4}) {
      for (std::int64_t offset : {0, 1, 2}) {
        run(norm_rope, given, {{"style", style}},
            Placement{.row_padding = padding, .offset_elems = offset});
      }
    }
  }
  run_candidates(norm_rope, given);
}

/// Payloads of NaN, which arithmetic would lose; beside heads of q and k in the same warps.
TEST_F(QkNormRope, CopiesTheBitsOfValues) {
  std::vector<Array> given = with_table(heads(bf16, {.q = 3, .d = 8}), 8);
  Array v = make_array("v", bf16, {3, 2, 8});
  for (std::size_t i = 0; i < v.bytes.size(); ++i)
    v.bytes[i] = std::byte(i % 2 == 0 ? 0x81 + i : 0x7f + i % 4 * 0x40);
  given.push_back(v);
  EXPECT_EQ(run(norm_rope, given).back().bytes, v.bytes);
  EXPECT_EQ(run(norm_rope, with_cache(with_table(heads(bf16, {.d = 64}), 64))).back().name,
            "v_out");
}

TEST_F(QkNormRope, MakesPackedHeadsContiguous) {
  constexpr std::int64_t kTokens = 5, kQ = 4, kK = 2, kD = 64, kWidth = (kQ + 2 * kK) * kD;
  const Array packed = random("qkv", bf16, {kTokens, kWidth});
  const Array positions = make_array("positions", s64, {kTokens}, std::vector<double>(kTokens, 3));
  const Array angles = table(f32, 50, kD);
  Buffer in(device, 8192), index(device, 256), turns(device, 1 << 14), out(device, 8192);
  in.upload(packed.bytes);
  index.upload(positions.bytes);
  turns.upload(angles.bytes);
  const auto part = [&](std::int64_t first, std::int64_t count) {
    return make_view(in.address() + static_cast<std::uint64_t>(first * kD * 2), bf16,
                     std::array<std::int64_t, 3>{kTokens, count, kD},
                     std::array<std::int64_t, 3>{kWidth, kD, 1});
  };
  const auto dense = [&](std::int64_t first, std::int64_t count) {
    return make_view(out.address() + static_cast<std::uint64_t>(kTokens * first * kD * 2), bf16,
                     std::array<std::int64_t, 3>{kTokens, count, kD});
  };
  const QkTensors tensors{
      .q = part(0, kQ),
      .k = part(kQ, kK),
      .positions = make_view(index.address(), s64, std::array<std::int64_t, 1>{kTokens}),
      .cos_sin = make_view(turns.address(), f32, std::array<std::int64_t, 2>{50, kD}),
      .q_out = dense(0, kQ),
      .k_out = dense(kQ, kK),
      .v = part(kQ + kK, kK),
      .v_out = dense(kQ + kK, kK)};
  qk_norm_rope(stream, tensors);
  stream.synchronize();
  const std::vector<std::byte> all = download<std::byte>(out);
  constexpr std::int64_t kRow = kK * kD * 2;  // bytes
  for (std::int64_t token = 0; token < kTokens; ++token) {
    const auto from = packed.bytes.begin() + (token * kWidth + (kQ + kK) * kD) * 2;
    EXPECT_TRUE(
        std::equal(from, from + kRow, all.begin() + kTokens * (kQ + kK) * kD * 2 + token * kRow))
        << token;
  }
  const auto text = [&](const std::optional<View>& v, const std::optional<View>& v_out) {
    QkTensors wrong = tensors;
    wrong.v = v;
    wrong.v_out = v_out;
    try {
      plan_qk("qk_norm_rope", device.properties(), wrong, {.style = RopeStyle::neox});
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(text({}, tensors.v_out),
            "qk_norm_rope: v_out is given without v; it takes a copy of v");
  EXPECT_EQ(text(tensors.v, {}),
            "qk_norm_rope: v is given without v_out and without a cache; give v_out, or "
            "slot_mapping, key_cache and value_cache");
  EXPECT_EQ(text(tensors.v, tensors.v), "qk_norm_rope: v and v_out overlap; they must be apart");
  EXPECT_EQ(text(tensors.v, tensors.k_out),
            "qk_norm_rope: k_out and v_out overlap; they must be apart");
  EXPECT_EQ(text(tensors.v, dense(kQ + kK, 1)), "qk_norm_rope: v_out is bf16[5,1,64] and v " +
                                                    to_string(*tensors.v) +
                                                    "; types and shapes must be equal");
  View turned = *tensors.v_out;
  turned.stride = {kK * kD, 1, kK};
  EXPECT_EQ(text(tensors.v, turned),
            "qk_norm_rope: v_out is " + to_string(turned) + "; its last stride must be 1");
}

TEST_F(QkNormRope, WritesCachesInEveryConfiguration) {
  Heads h{.tokens = 5, .q = 4, .k = 2, .d = 64};
  run_candidates(norm_rope, with_cache(with_table(heads(f16, h), 32), "nhd", s32));
}

TEST_F(QkNormRope, WritesCachesOfAnyAlignment) {
  for (std::int64_t padding : {1, 4}) {
    for (std::int64_t offset : {0, 1}) {
      run(norm_rope, with_cache(with_table(heads(bf16, {.d = 64}), 64)), {},
          Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

TEST_F(QkNormRope, TakesACacheWithoutKeys) {
  run(norm_rope, with_cache(with_table(heads(bf16, {.k = 0, .d = 64}), 64)));
  run(norm_rope, with_cache(with_table(heads(bf16, {.k = 0, .d = 64}), 32), "nhd", s64, e4m3));
}

TEST_F(QkNormRope, SkipsSlotsBeyondTheCacheAndKeepsNanOfValuesThere) {
  std::vector<Array> given = with_cache(with_table(heads(f32, {.q = 3, .d = 8}), 8));
  given[4] = make_array("slot_mapping", s64, {3}, std::vector<double>{12, 9e15, 0});
  std::vector<double> values = to_doubles(given.back());
  values[2 * 16 + 3] = NAN;  // of token 2, whose warp has heads of q and k
  given.back() = make_array("v", f32, {3, 2, 8}, values);
  run(norm_rope, given);
}

TEST_F(QkNormRope, RefusesCachesThatDoNotFit) {
  std::vector<Array> given = with_cache(with_table(heads(bf16, {.d = 64}), 64));
  std::vector<Array> without_v(given.begin(), given.end() - 1);
  EXPECT_EQ(refusal(norm_rope, without_v),
            "qk_norm_rope: v is missing; v, slot_mapping, key_cache and value_cache come together");
  std::vector<Array> other = given;
  other[5] = random("key_cache", f16, {4, 3, 2, 64});
  EXPECT_EQ(refusal(norm_rope, other),
            "qk_norm_rope: key_cache has type f16; it must be e4m3, e5m2 or k's type bf16");
  other = with_scales(given, 2);
  EXPECT_EQ(refusal(norm_rope, other),
            "qk_norm_rope: k_scale is f32[2], but the cache has k's type, whose bits are copied");
  other = with_scales(with_cache(with_table(heads(bf16, {.d = 64}), 64), "nhd", s64, e4m3), 3);
  EXPECT_EQ(refusal(norm_rope, other),
            "qk_norm_rope: k_scale is f32[3]; it must be f32[1] or f32[2]");
  std::vector<Array> alone = with_scales(with_table(heads(bf16, {.d = 64}), 64), 2);
  EXPECT_EQ(refusal(norm_rope, alone), "qk_norm_rope: k_scale is given without a cache");
  other = given;
  other[5] = random("key_cache", bf16, {4, 3, 1, 64});
  EXPECT_EQ(
      refusal(norm_rope, other),
      "qk_norm_rope: key_cache has 1 heads of 64 elements and k is bf16[3,2,64]; they must be "
      "equal");
  other = given;
  other.back() = random("v", bf16, {3, 1, 64});
  EXPECT_EQ(refusal(norm_rope, other),
            "qk_norm_rope: v is bf16[3,1,64] and k bf16[3,2,64]; types and shapes must be equal");
}

TEST_F(QkNormRope, TakesStridesAndAlignments) {
  for (const char* style : {"neox", "interleaved"}) {
    for (std::int64_t padding : {1, 2, 4}) {
      for (std::int64_t offset : {0, 1, 2}) {
        run(norm_rope, with_table(with_weights(bf16, {.d = 64}, bf16), 32), {{"style", style}},
            Placement{.row_padding = padding, .offset_elems = offset});
      }
    }
  }
}

TEST_F(QkNormRope, TurnsNothingAtPositionZeroOrBefore) {
  std::vector<Array> given = heads(f32, {.tokens = 2});
  given.push_back(make_array("positions", s32, {2}, std::vector<double>{0, -5}));
  given.push_back(table(f32, 3, 128));
  EXPECT_EQ(run(rope, given).front().bytes, given.front().bytes);
}

TEST_F(QkNormRope, WorksInPlaceInPackedRows) {
  constexpr std::int64_t kTokens = 5, kQ = 4, kK = 2, kD = 64, kWidth = (kQ + 2 * kK) * kD;
  Array packed = random("qkv", bf16, {kTokens, kWidth});
  Buffer memory(device, static_cast<std::int64_t>(packed.bytes.size()));
  memory.upload(packed.bytes);
  auto part = [&](std::int64_t first, std::int64_t count) {
    std::int64_t shape[] = {kTokens, count, kD}, stride[] = {kWidth, kD, 1};
    return make_view(memory.address() + static_cast<std::uint64_t>(first * kD * 2), bf16, shape,
                     stride);
  };
  View q = part(0, kQ), k = part(kQ, kK);
  qk_norm(stream, {.q = q, .k = k, .q_out = q, .k_out = k});
  stream.synchronize();

  std::vector<double> before = to_doubles(packed), q_values, k_values;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    auto at = before.begin() + t * kWidth;
    q_values.insert(q_values.end(), at, at + kQ * kD);
    k_values.insert(k_values.end(), at + kQ * kD, at + (kQ + kK) * kD);
  }
  std::vector<Array> apart = run(norm, {make_array("q", bf16, {kTokens, kQ, kD}, q_values),
                                        make_array("k", bf16, {kTokens, kK, kD}, k_values)});
  Array after = packed;
  after.bytes = download<std::byte>(memory);
  std::vector<double> values = to_doubles(after);
  std::vector<double> normed_q = to_doubles(apart[0]), normed_k = to_doubles(apart[1]);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t i = 0; i < kWidth; ++i) {
      auto at = static_cast<std::size_t>(t * kWidth + i);
      double expected = i < kQ * kD ? normed_q[static_cast<std::size_t>(t * kQ * kD + i)]
                        : i < (kQ + kK) * kD
                            ? normed_k[static_cast<std::size_t>(t * kK * kD + i - kQ * kD)]
                            : before[at];
      EXPECT_EQ(values[at], expected) << "token " << t << ", element " << i;
    }
  }
}

TEST_F(QkNormRope, SpreadsNanOverItsHeadAlone) {
  std::vector<Array> given = heads(f32, {.tokens = 1, .q = 3, .k = 0, .d = 8});
  std::vector<double> values = to_doubles(given[0]);
  values[9] = NAN;
  given[0] = make_array("q", f32, {1, 3, 8}, values);
  std::vector<double> out = to_doubles(run(norm_rope, with_table(given, 8)).front());
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(std::isnan(out[i]), i / 8 == 1) << i;
}

TEST_F(QkNormRope, LaunchesNothingForNoTokens) {
  run(norm, with_weights(bf16, {.tokens = 0}, bf16));
}

TEST_F(QkNormRope, MakesProblemsOfEveryLayoutAndOfAnEmptyTable) {
  const std::string text =
      "T=2,HQ=2,HK=2,D=64,R=64,q=bf16,k=bf16,positions=s64,cos_sin=f32,v=bf16,slot_mapping=s64,"
      "key_cache=bf16,value_cache=bf16,cache_layout=";
  for (const char* layout : {"nhd", "hnd"}) {
    const Problem problem = parse_problem(norm_rope.schema, text + layout + ",P=16");
    run(norm_rope, make_inputs(norm_rope, problem, 1), {{"cache_layout", layout}});
  }
  const Problem empty = parse_problem(norm_rope.schema, text + "nhd,P=0");
  EXPECT_EQ(refusal(norm_rope, make_inputs(norm_rope, empty, 1)),
            "qk_norm_rope: cos_sin is f32[0,64]; it must have rows");
}

TEST_F(QkNormRope, RefusesPositionsBeyondTheTable) {
  std::vector<Array> given = with_table(heads(bf16, {}), 64);
  named(given, "positions") = make_array("positions", s32, {3}, std::array{0.0, 50.0, -1.0});
  EXPECT_EQ(refusal(rope, given), "rope: positions[1] is 50; cos_sin has 50 rows");
  EXPECT_EQ(refusal(norm_rope, given), "qk_norm_rope: positions[1] is 50; cos_sin has 50 rows");
}

TEST_F(QkNormRope, RefusesWhatItCannotTake) {
  std::vector<Array> given = heads(bf16, {});
  EXPECT_EQ(refusal(norm, {given[0], random("k", f16, {3, 2, 128})}),
            "qk_norm: k is f16[3,2,128]; it must have q's type bf16");
  EXPECT_EQ(refusal(norm, {given[0], random("k", bf16, {3, 2, 64})}),
            "qk_norm: k is bf16[3,2,64] and q bf16[3,4,128]; T and D must be equal");
  EXPECT_EQ(refusal(norm, {given[0], given[1], random("q_weight", bf16, {64})}),
            "qk_norm: q_weight is bf16[64]; it must have 128 contiguous elements");
  EXPECT_EQ(refusal(rope, with_table(given, 130)),
            "rope: cos_sin is f32[50,130]; it must have rows of an even number of elements, at "
            "most D = 128");
  EXPECT_EQ(refusal(rope, with_table(heads(bf16, {.d = 65}), 64), {{"style", "interleaved"}}),
            "rope: q is bf16[3,4,65]; D must be even for the interleaved style");
}

TEST_F(QkNormRope, RefusesPartsThatOverlap) {
  std::int64_t shape[] = {3, 2, 64}, stride[] = {256, 64, 1};
  View q = make_view(4096, bf16, shape, stride);
  View k = make_view(4096 + 128, bf16, shape, stride);  // one head further on
  try {
    plan_qk("qk_norm", device.properties(), {.q = q, .k = k, .q_out = q, .k_out = k}, {});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "qk_norm: q and k_out overlap; they must be apart");
  }
}

}  // namespace
}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// embedding with a norm: against its reference, and bit for bit against embedding, then rms_norm.
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/row_gather/reference.h"
#include "kernels/row_gather/row_gather.h"
#include "operator_fixture.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilewright {
namespace {

using test::Options;
using test::Placement;

const std::vector<double> kTokens{3, -1, 8, 9, 0, 5};

class EmbeddingNorm : public test::OperatorTest {
 protected:
  const Operator& embed = embedding_operator();

  static Array ids(const std::vector<double>& values, Type type = s32) {
    return make_array("ids", type, {static_cast<std::int64_t>(values.size())}, values);
  }
  /// Six tokens of nine rows, two without a row.
  static std::vector<Array> plain(Type table, std::int64_t h, Type w) {
    return {ids(kTokens), random("table", table, {9, h}, 2), random("w", w, {h}, 1, 4)};
  }
  static std::vector<Array> with_added(std::vector<Array> inputs, Type type) {
    const std::int64_t h = named(inputs, "table").shape[1];
    const std::array types{0.0, 1.0, 1.0, 0.0, -1.0, 2.0};
    const std::array positions{6.0, 1.0, 0.0, 4.0, 7.0, -3.0};
    inputs.push_back(random("type_table", type, {2, h}, 1, 2));
    inputs.push_back(make_array("token_types", s32, {6}, types));
    inputs.push_back(random("position_table", type, {7, h}, 1, 3));
    inputs.push_back(make_array("positions", s64, {6}, positions));
    return inputs;
  }
  static Options normed(Options options = {}) {
    options.emplace_back("norm", "true");
    return options;
  }

  /// Runs without residual_out, into `out` as it is, and compares with the reference.
  Array run_alone(const std::vector<Array>& inputs, const Options& options, Array out) {
    Arguments arguments(embed.schema);
    for (const auto& [name, value] : options)
      arguments.set_option(name, value);
    HostTensors tensors;
    std::vector<Buffer> memory;
    auto add = [&](const Array& array) {
      memory.emplace_back(device, static_cast<std::int64_t>(array.bytes.size()) + 16);
      memory.back().upload(array.bytes);
      arguments.set(array.name, make_view(memory.back().address(), array.type, array.shape));
    };
    for (const Array& input : inputs) {
      tensors.set(input);
      add(input);
    }
    add(out);
    embed.launch(device, stream, arguments);
    stream.synchronize();
    memory.back().download(out.bytes);
    embed.reference(arguments, tensors);
    const Comparison found =
        compare(out, tensors.at("out"), embed.tolerance(arguments, "out"), NanRule::equal);
    EXPECT_EQ(found.wrong, 0) << found.first_wrong << ": " << found.out << ", " << found.reference;
    return out;
  }

  /// The bytes of the output of that name.
  static std::vector<std::byte> bytes_of(const std::vector<Array>& outputs, const char* name) {
    for (const Array& output : outputs) {
      if (output.name == name) return output.bytes;
    }
    return {};
  }
};

TEST_F(EmbeddingNorm, MatchesTheReferenceOverWidths) {
  for (std::int64_t h : {1, 2, 7, 8, 72, 100, 333, 1000, 2304, 4096, 5001}) {
    run(embed, plain(bf16, h, bf16), normed());
    run(embed, with_added(plain(bf16, h, bf16), bf16), normed({{"scale", "-45.25"}}));
  }
}

TEST_F(EmbeddingNorm, MatchesTheReferenceOverTypes) {
  for (Type table : {bf16, f16, f32, e4m3}) {
    for (const char* out : {"bf16", "f16", "f32"}) {
      for (const char* residual : {"as_out", "bf16", "f32"}) {
        const Options options = normed({{"out_type", out}, {"residual_type", residual}});
        std::vector<Array> inputs = plain(table, 72, out == std::string("f16") ? f16 : f32);
        run(embed, inputs, options);
        inputs = with_added(inputs, table == e4m3 ? f16 : table);
        inputs.push_back(random("row_scale", f32, {9}));
        run(embed, inputs, options);
      }
    }
  }
}

TEST_F(EmbeddingNorm, MatchesTheReferenceOverTokens) {
  for (std::int64_t tokens : {1, 2, 64, 300}) {
    for (std::int64_t h : {16, 128, 1024}) {
      std::vector<double> values;
      for (std::int64_t t = 0; t < tokens; ++t)
        values.push_back(static_cast<double>(t * 7 % 53 - 1));
      run(embed, {ids(values, s64), random("table", bf16, {50, h}), random("w", bf16, {h})},
          normed());
    }
  }
  run(embed, {ids({}), random("table", bf16, {4, 8})}, normed());
  run(embed, {ids({0, 1}), random("table", bf16, {0, 8})}, normed());
}

TEST_F(EmbeddingNorm, TakesItsOptions) {
  const std::vector<Array> inputs = plain(bf16, 512, f32);
  run(embed, inputs, normed({{"eps", "0.5"}, {"weight_bias", "1"}}));
  run(embed, {inputs[0], inputs[1]}, normed({{"weight_bias", "1"}}));
  run(embed, {inputs[0], inputs[1]}, normed());
  run(embed, inputs,
      normed({{"vocab_start", "2"},
              {"vocab_count", "3"},
              {"added_start", "8"},
              {"added_row", "7"},
              {"scale", "3"}}));
}

TEST_F(EmbeddingNorm, IsRightInEveryConfiguration) {
  for (std::int64_t h : {100, 2048})
    run_candidates(embed, with_added(plain(bf16, h, bf16), f32), normed());
}

TEST_F(EmbeddingNorm, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 4, 8}) {
    for (std::int64_t offset : {0, 1, 2}) {
      run(embed, with_added(plain(bf16, 200, bf16), f32), normed({{"residual_type", "f32"}}),
          Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

/// 70000 elements do not fit the registers, nor do 8193 accesses of one.
TEST_F(EmbeddingNorm, GathersLongRowsTwice) {
  for (std::int64_t h : {8193, 70000}) {
    std::vector<Array> inputs = plain(bf16, h, bf16);
    inputs.push_back(make_array("bad_ids", u32, {1}, std::array{40.0}));
    run(embed, inputs, normed());
  }
}

TEST_F(EmbeddingNorm, EqualsAnEmbeddingThenANorm) {
  for (std::int64_t h : {7, 72, 333, 2304, 5001, 8193, 70000}) {
    for (const char* residual : {"bf16", "f32"}) {
      const bool added = h < 5000;
      std::vector<Array> all = plain(f32, h, f32);
      all[0] = ids({3, 1, 8, 3, 0, 5});  // rms_norm keeps the sign of 0
      const std::vector<Array> inputs = added ? with_added(all, f32) : all;
      std::vector<Array> unnormed = inputs;
      remove(unnormed, "w");
      Array x = run(embed, unnormed, {{"scale", "1.7"}, {"out_type", residual}}).front();
      const std::vector<Array> out =
          run(embed, inputs,
              normed({{"scale", "1.7"}, {"out_type", residual}, {"residual_type", residual}}));
      EXPECT_EQ(bytes_of(out, "residual_out"), x.bytes) << h;
      x.name = "x";
      EXPECT_EQ(bytes_of(out, "out"), run(rms_norm_operator(), {x, all[2]}).front().bytes) << h;
    }
  }
}

TEST_F(EmbeddingNorm, ReadsUnroundedRowsWhereTheyAreNotStored) {
  for (std::int64_t h : {7, 72, 2304, 70000}) {
    const Array out = make_array("out", bf16, {6, h});
    run_alone(plain(f32, h, f32), normed({{"scale", "1.7"}, {"out_type", "bf16"}}), out);
    // Rows that are stored as they are give the same bits either way.
    const std::vector<Array> inputs = plain(bf16, h, bf16);
    EXPECT_EQ(run_alone(inputs, normed(), out).bytes,
              bytes_of(run(embed, inputs, normed()), "out"));
  }
  // 256 + 1 is 256 in bf16.
  auto row = [](const char* name, double value) {
    return make_array(name, f32, {1, 2}, std::array{value, 1.0});
  };
  auto zero = [](const char* name) { return make_array(name, s32, {1}, std::array{0.0}); };
  const std::vector<Array> inputs{row("table", 256), zero("ids"), row("type_table", 1),
                                  zero("token_types")};
  const Options options = normed({{"residual_type", "bf16"}});
  const std::vector<double> unrounded =
      to_doubles(run_alone(inputs, options, make_array("out", f32, {1, 2})));
  const std::vector<double> rounded = to_doubles(run(embed, inputs, options).front());
  EXPECT_NEAR(unrounded[0] / unrounded[1], 257.0 / 2, 1e-4);
  EXPECT_NEAR(rounded[0] / rounded[1], 256.0 / 2, 1e-4);
}

TEST_F(EmbeddingNorm, GivesATokenTheSameBitsAloneAndAmongOthers) {
  for (std::int64_t h : {24, 1024}) {
    std::vector<double> many;
    many.reserve(600);
    for (int t = 0; t < 600; ++t)
      many.push_back(t * 7 % 9);
    const Array table = random("table", bf16, {9, h}, 2);
    const std::vector<Array> together = run(embed, {ids(many), table}, normed());
    const std::vector<std::byte> all = bytes_of(together, "out");
    for (int t : {0, 33, 599}) {
      const auto token = static_cast<std::size_t>(t);
      const std::vector<std::byte> one =
          bytes_of(run(embed, {ids({many[token]}), table}, normed()), "out");
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + t * h * 2)) << h << " " << t;
    }
  }
}

TEST_F(EmbeddingNorm, GivesTheSameBitsByAnyThreads) {
  const std::vector<Array> inputs = with_added(plain(bf16, 1024, bf16), bf16);
  std::vector<tune::Lookup> lookups;
  std::vector<std::byte> expected;
  {
    tune::Watch watch;
    expected = bytes_of(run(embed, inputs, normed()), "out");
    lookups = watch.lookups();
  }
  ASSERT_EQ(lookups.size(), 1U);
  EXPECT_EQ(lookups.front().space->name, "embedding.norm_blocks");
  const tune::Lookup& lookup = lookups.front();
  for (const tune::Config& config :
       tune::candidates(*lookup.space, device.properties(), lookup.key)) {
    const tune::Pin pin(*lookup.space, config);
    EXPECT_EQ(bytes_of(run(embed, inputs, normed()), "out"), expected)
        << tune::config_text(*lookup.space, config);
  }
}

TEST_F(EmbeddingNorm, GivesTokensWithoutARowZerosWhateverTheWeightsAre) {
  for (const char* eps : {"0", "1e-6"}) {
    for (double weight : {-2.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      const std::vector<double> weights(8, weight), nan(16, NAN);
      const std::vector<Array> inputs{ids({-1, 2, 1}), make_array("table", f32, {2, 8}, nan),
                                      make_array("w", f32, {8}, weights),
                                      make_array("bad_ids", u32, {1}, std::array{5.0})};
      const std::vector<Array> outputs =
          run(embed, inputs, normed({{"eps", eps}, {"scale", "-2"}, {"weight_bias", "-1"}}));
      for (const Array& output : outputs) {
        const std::vector<double> values = to_doubles(output);
        for (std::size_t i = 0; i < values.size(); ++i) {
          EXPECT_TRUE(i < 16 ? values[i] == 0 && !std::signbit(values[i]) : std::isnan(values[i]))
              << output.name << " " << i;
        }
      }
    }
  }
}

TEST_F(EmbeddingNorm, GivesNanForRowsOfZerosWithoutEps) {
  const Array zeros = make_array("table", f32, {1, 4});
  for (double y : to_doubles(run(embed, {ids({0}), zeros}, normed({{"eps", "0"}})).front()))
    EXPECT_TRUE(std::isnan(y));
  for (double y : to_doubles(run(embed, {ids({0}), zeros}, normed()).front()))
    EXPECT_EQ(y, 0);
}

TEST_F(EmbeddingNorm, LeavesSkippedRowsAsTheyAre) {
  const std::vector<double> before(12, 7.0);
  const Array table = random("table", f32, {2, 4}), tokens = ids({-1, 1, 2});
  Buffer rows(device, 1024), out(device, 1024), sums(device, 1024), numbers(device, 1024);
  rows.upload(table.bytes);
  numbers.upload(tokens.bytes);
  out.upload(make_array("out", f32, {3, 4}, before).bytes);
  sums.upload(make_array("residual_out", f32, {3, 4}, before).bytes);
  const std::array<std::int64_t, 2> shape{3, 4};
  embedding(stream,
            {.ids = make_view(numbers.address(), s32, std::array<std::int64_t, 1>{3}),
             .table = make_view(rows.address(), f32, std::array<std::int64_t, 2>{2, 4}),
             .out = make_view(out.address(), f32, shape),
             .residual_out = make_view(sums.address(), f32, shape)},
            {.missing = MissingRow::skip, .norm = GatherNorm{}});
  stream.synchronize();
  for (const Buffer* written : {&out, &sums}) {
    const auto values = download<float>(*written);
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_EQ(values[i] == 7.0f, i / 4 != 1) << i;
  }
}

TEST_F(EmbeddingNorm, RefusesWhatItCannotNormalise) {
  const std::vector<Array> two{ids({1}), random("table", bf16, {4, 8})};
  auto with = [&](const Array& array) { return std::vector<Array>{two[0], two[1], array}; };
  EXPECT_EQ(refusal(embed, with(random("w", bf16, {8}))),
            "embedding: w is given without norm=true; nothing is normalised");
  EXPECT_EQ(refusal(embed, two, {{"eps", "1e-5"}}), "embedding: eps=1e-5 without norm=true");
  EXPECT_EQ(refusal(embed, two, {{"weight_bias", "1"}}),
            "embedding: weight_bias=1 without norm=true");
  EXPECT_EQ(refusal(embed, two, {{"residual_type", "f32"}}),
            "embedding: residual_type=f32 without norm=true");
  EXPECT_EQ(refusal(embed, with(random("w", bf16, {7})), normed()),
            "embedding: w is bf16[7]; it must have 8 contiguous elements");
  EXPECT_EQ(
      refusal(embed, {two[0], random("table", e4m3, {4, 8})}, normed({{"residual_type", "bf16"}})),
      "embedding: out has type e4m3; with norm=true it must be bf16, f16 or f32: give out_type");
  Buffer memory(device, 4096);
  auto at = [&](std::uint64_t offset, Type type, std::vector<std::int64_t> shape) {
    return make_view(memory.address() + offset, type, shape);
  };
  const View w = at(1024, bf16, {8});
  auto text = [&](const std::optional<View>& weights, const std::optional<View>& sums,
                  const RowGatherOptions& options) {
    const RowGatherTensors tensors{.ids = at(0, s32, {4}),
                                   .table = at(256, bf16, {4, 8}),
                                   .out = at(512, bf16, {4, 8}),
                                   .w = weights,
                                   .residual_out = sums};
    try {
      embedding(stream, tensors, options);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  const RowGatherOptions norm{.norm = GatherNorm{}};
  EXPECT_EQ(text({}, at(2048, bf16, {4, 8}), {}),
            "embedding: residual_out is given without norm=true; out has its rows then");
  EXPECT_EQ(text(w, at(2048, bf16, {4, 9}), norm),
            "embedding: residual_out is bf16[4,9] and out bf16[4,8]; the shapes must be equal");
  EXPECT_EQ(text(w, at(2048, e4m3, {4, 8}), norm),
            "embedding: residual_out has type e4m3; it must be bf16, f16 or f32");
  EXPECT_EQ(text(w, at(512, bf16, {4, 8}), norm),
            "embedding: out and residual_out overlap; they must be apart");
  EXPECT_EQ(text(w, at(256, bf16, {4, 8}), norm),
            "embedding: table and residual_out overlap; they must be apart");
  EXPECT_EQ(text(w, at(1024, bf16, {4, 8}), norm),
            "embedding: w and residual_out overlap; they must be apart");
  EXPECT_EQ(text(at(512, bf16, {8}), {}, norm), "embedding: w and out overlap; they must be apart");
  EXPECT_EQ(text(at(1024, e4m3, {8}), {}, norm),
            "embedding: w has type e4m3; it must be bf16, f16 or f32");
  EXPECT_EQ(text(w, {}, {.norm = GatherNorm{.eps = -1}}),
            "embedding: eps=-1; it must be finite and at least 0");
  EXPECT_EQ(text(w, {}, {.norm = GatherNorm{.weight_bias = INFINITY}}),
            "embedding: weight_bias=inf; it must be finite");
  View turned = at(2048, bf16, {4, 8});
  turned.stride = {1, 4};
  EXPECT_EQ(text(w, turned, norm), "embedding: residual_out is " + to_string(turned) +
                                       " and has 4 as its last stride; it must be 1");
}

TEST_F(EmbeddingNorm, RefusesRowsThatAreTooLong) {
  constexpr std::int64_t kLong = (std::int64_t{1} << 20) + 1;
  Buffer memory(device, 4096);
  const auto rows = [&](std::uint64_t offset) {
    return make_view(memory.address() + offset, bf16, std::array<std::int64_t, 2>{1, kLong});
  };
  try {
    plan_row_gather("embedding", device.properties(),
                    {.ids = make_view(memory.address(), s32, std::array<std::int64_t, 1>{1}),
                     .table = rows(1 << 24),
                     .out = rows(1 << 28)},
                    {.norm = GatherNorm{}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(
        error.message(),
        "embedding: table has rows of 1048577 elements; with norm=true they may have 1048576");
  }
}

}  // namespace
}  // namespace tilewright

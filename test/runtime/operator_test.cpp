// SPDX-License-Identifier: Apache-2.0
// Arguments against a schema: what is accepted, and the texts of what is not.
#include "tilewright/operator.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr Type kFloats[] = {Type::bf16, Type::f32};
constexpr Type kInts[] = {Type::s32};
constexpr std::string_view kAuto[] = {"auto"};
constexpr std::string_view kStyles[] = {"neox", "interleaved"};
constexpr TensorSpec kTensors[] = {
    {"x", Role::input, Presence::required, "T,H", kFloats, "", "rows"},
    {"w", Role::input, Presence::optional, "H", kFloats, "", "weight"},
    {"ids", Role::input, Presence::optional, "...,2", kInts, "", "pairs"},
    {"y", Role::output, Presence::required, "T,H", kFloats, "x", "result"},
};
constexpr OptionSpec kOptions[] = {
    {"eps", OptionType::real, "1e-6", {}, 0, 1, "added"},
    {"warps", OptionType::integer, "auto", kAuto, 1, 32, "of a block"},
    {"flag", OptionType::boolean, "false", {}},
    {"style", OptionType::choice, "neox", kStyles},
    {"note", OptionType::text, "", {}},
    {"k", OptionType::integer, {}, {}, 1, 8, "how many"},
};
constexpr Schema kSchema = {"norm", 1, "y = x", "a norm", kTensors, kOptions};

template <typename Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

Arguments with_x() {
  Arguments arguments(kSchema);
  arguments.set("x", make_view(4096, Type::bf16, Ints{4, 128}));
  return arguments;
}

TEST(Operator, NamesRolesAndTypesOfOptionsAsUsersReadThem) {
  EXPECT_EQ(name(Role::input), "input");
  EXPECT_EQ(name(Role::output), "output");
  EXPECT_EQ(name(Role::inout), "inout");
  EXPECT_EQ(name(OptionType::real), "number");
  EXPECT_EQ(name(OptionType::integer), "integer");
  EXPECT_EQ(name(OptionType::boolean), "boolean");
  EXPECT_EQ(name(OptionType::choice), "choice");
  EXPECT_EQ(name(OptionType::text), "text");
}

TEST(Arguments, OptionsHaveDefaults) {
  const Arguments arguments(kSchema);
  EXPECT_EQ(arguments.real("eps"), 1e-6);
  EXPECT_EQ(arguments.integer_or_word("warps"), std::nullopt);
  EXPECT_FALSE(arguments.boolean("flag"));
  EXPECT_EQ(arguments.text("style"), "neox");
}

TEST(Arguments, ANumberWithoutADefaultHasToBeGiven) {
  Arguments arguments(kSchema);
  EXPECT_EQ(message_of([&] { arguments.integer("k"); }),
            "norm: option 'k' is missing; it must be an integer of at least 1 and at most 8");
  EXPECT_EQ(message_of([&] { arguments.set_option("k", "0"); }),
            "norm: option 'k' is '0'; it must be an integer of at least 1 and at most 8");
  arguments.set_option("k", "3");
  EXPECT_EQ(arguments.integer("k"), 3);
}

TEST(Arguments, OptionsAreReadAsTheyAreTyped) {
  Arguments arguments(kSchema);
  arguments.set_option("eps", "0.5");
  arguments.set_option("warps", 8.0);
  arguments.set_option("flag", "true");
  EXPECT_EQ(arguments.real("eps"), 0.5);
  EXPECT_EQ(arguments.integer_or_word("warps"), 8);
  EXPECT_TRUE(arguments.boolean("flag"));
}

TEST(Arguments, WrongOptionsSayWhatIsAllowed) {
  struct Row {
    const char* option;
    const char* value;
    const char* message;
  };
  const Row rows[] = {
      {"eps", "-1",
       "norm: option 'eps' is '-1'; it must be a finite number of at least 0 and at most 1"},
      {"eps", "nan",
       "norm: option 'eps' is 'nan'; it must be a finite number of at least 0 and at most 1"},
      {"eps", "1e-6x",
       "norm: option 'eps' is '1e-6x'; it must be a finite number of at least 0 and at most 1"},
      {"warps", "99",
       "norm: option 'warps' is '99'; it must be an integer of at least 1 and at most 32, or one "
       "of auto"},
      {"warps", "2.5",
       "norm: option 'warps' is '2.5'; it must be an integer of at least 1 and at most 32, or one "
       "of auto"},
      {"flag", "maybe", "norm: option 'flag' is 'maybe'; it must be true or false"},
      {"style", "gpt", "norm: option 'style' is 'gpt'; it must be one of neox, interleaved"},
      {"epsilon", "1",
       "norm: no option is named 'epsilon'; it has eps, warps, flag, style, note, k"},
  };
  for (const Row& row : rows) {
    Arguments arguments(kSchema);
    EXPECT_EQ(message_of([&] { arguments.set_option(row.option, row.value); }), row.message);
  }
}

TEST(Arguments, WrongTensorsSayWhatIsAllowed) {
  Arguments arguments = with_x();
  EXPECT_EQ(message_of([&] { arguments.set("z", View{}); }),
            "norm: no tensor is named 'z'; it has x, w, ids, y");
  EXPECT_EQ(message_of([&] {
              arguments.set("x", make_view(64, Type::f64, Ints{4, 128}));
            }),
            "norm: 'x' is f64[4,128]; its type must be one of bf16, f32");
  EXPECT_EQ(message_of([&] { arguments.tensor("w"); }), "norm: tensor 'w' is missing");
}

TEST(Arguments, ChecksShapesAgainstOneAnother) {
  const auto check_with = [](std::string_view name, Type type, const Ints& shape) {
    Arguments arguments = with_x();
    arguments.set(name, make_view(1 << 20, type, shape));
    return message_of([&] { arguments.check(Arguments::Outputs::optional); });
  };
  EXPECT_EQ(check_with("w", Type::f32, {128}), "no error");
  EXPECT_EQ(check_with("w", Type::f32, {64}),
            "norm: 'w' is f32[64]; its shape must be [H] with H = 128 as in 'x'");
  EXPECT_EQ(check_with("w", Type::f32, {4, 128}), "norm: 'w' is f32[4,128]; its shape must be [H]");
  EXPECT_EQ(check_with("ids", Type::s32, {5, 7, 2}), "no error");
  EXPECT_EQ(check_with("ids", Type::s32, {5, 3}),
            "norm: 'ids' is s32[5,3]; its shape must be [...,2]");
}

TEST(Arguments, OutputsAreNeededForALaunchAndMayBeInPlaceOnlyAsAWhole) {
  Arguments arguments = with_x();
  EXPECT_EQ(message_of([&] { arguments.check(Arguments::Outputs::required); }),
            "norm: tensor 'y' is missing");
  arguments.set("y", arguments.tensor("x"));
  EXPECT_EQ(message_of([&] { arguments.check(Arguments::Outputs::required); }), "no error");
  arguments.set("y", make_view(4096 + 256, Type::bf16, Ints{4, 128}));
  EXPECT_EQ(message_of([&] { arguments.check(Arguments::Outputs::required); }),
            "norm: 'y' overlaps 'x' in memory; give them separate tensors, or exactly the same "
            "one");
  EXPECT_EQ(message_of([&] {
              arguments.set("y", make_view(0, Type::bf16, Ints{4, 128}));
              arguments.check(Arguments::Outputs::required);
            }),
            "norm: 'y' is bf16[4,128] at address 0");
}

TEST(Arguments, OutputsMayLieBetweenTheRowsOfInputs) {
  const Ints shape{4, 64}, pitch{128, 1};
  Arguments arguments(kSchema);
  arguments.set("x", make_view(4096, Type::bf16, shape, pitch));
  const auto check_at = [&](std::uint64_t address, const Ints& stride) {
    arguments.set("y", make_view(address, Type::bf16, shape, stride));
    return message_of([&] { arguments.check(Arguments::Outputs::required); });
  };
  EXPECT_EQ(check_at(4096 + 128, pitch), "no error");
  EXPECT_EQ(check_at(4096 + 126, pitch),
            "norm: 'y' overlaps 'x' in memory; give them separate tensors, or exactly the same "
            "one");
  EXPECT_EQ(check_at(1 << 20, {63, 1}),
            "norm: 'y' is bf16[4,64]:[63,1], whose elements overlap; give each memory of its own");
  EXPECT_EQ(check_at(1 << 20, {0, 1}),
            "norm: 'y' is bf16[4,64]:[0,1], whose elements overlap; give each memory of its own");
}

TEST(Arguments, AWorkspaceThatIsTooSmallSaysHowManyBytesItNeeds) {
  Arguments arguments = with_x();
  EXPECT_EQ(arguments.workspace(0).size_bytes, 0);
  EXPECT_EQ(message_of([&] { arguments.workspace(256); }),
            "norm: the workspace has 0 bytes; it needs 256, zeroed once");
  arguments.set_workspace({4096, 256});
  EXPECT_EQ(arguments.workspace(256).address, 4096U);
}

TEST(Arguments, SizesComeFromShapes) {
  const Arguments arguments = with_x();
  EXPECT_EQ(arguments.size("T"), 4);
  EXPECT_EQ(arguments.size("H"), 128);
  EXPECT_EQ(message_of([&] { arguments.size("K"); }),
            "norm: size K is unknown: no tensor that has it is given");
}

TEST(Problem, ReadsSizesTypesAndOptionsInOneText) {
  const Problem problem = parse_problem(kSchema, "T=8,H=128,x=f32,eps=1e-5");
  EXPECT_EQ(problem.size("T"), 8);
  EXPECT_EQ(problem.types.at(0), std::pair(std::string("x"), Type::f32));
  EXPECT_EQ(problem.options.at(0), std::pair(std::string("eps"), std::string("1e-5")));
}

TEST(Problem, WrongTextsAreRefused) {
  const auto message = [](const char* text) {
    return message_of([&] { parse_problem(kSchema, text); });
  };
  EXPECT_EQ(message("T"), "norm: 'T' is not NAME=VALUE; write a problem as T=128,H=4096,x=bf16");
  EXPECT_EQ(message("T=-1"),
            "norm: 'T' is '-1'; it is a size and must be an integer of at least 0");
  EXPECT_EQ(message("x=half"), "norm: 'x' is 'half'; it is a tensor and takes a type: bf16, f32");
  EXPECT_EQ(message("K=1"),
            "norm: 'K' is no size, tensor or option; sizes: T, H; tensors: x, w, ids, y; options: "
            "eps, warps, flag, style, note, k");
  EXPECT_EQ(message_of([] { parse_problem(kSchema, "T=1").size("H"); }),
            "problem: size H is not given; add H=NUMBER");
}

TEST(Problem, GivesLeadingModesTheSizesThatNoTensorNames) {
  Operator op;
  op.schema = kSchema;
  const Problem problem = parse_problem(kSchema, "T=3,H=8,ids=s32");
  const std::vector<Array> inputs = make_inputs(op, problem, 1);
  EXPECT_EQ(to_string(inputs.back()), "ids: s32[3,2]");
}

TEST(Problem, MakesTheSameInputsForTheSameSeed) {
  Operator op;
  op.schema = kSchema;
  const Problem problem = parse_problem(kSchema, "T=100,H=128,w=f32");
  const std::vector<Array> inputs = make_inputs(op, problem, 1);
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(to_string(inputs[0]), "x: bf16[100,128]");
  EXPECT_EQ(to_string(inputs[1]), "w: f32[128]");
  EXPECT_EQ(make_inputs(op, problem, 1), inputs);
  EXPECT_NE(make_inputs(op, problem, 2), inputs);
  double sum = 0;
  for (double value : to_doubles(inputs[0]))
    sum += value * value;
  EXPECT_NEAR(sum / 12800, 1, 0.1);  // normal numbers: their variance is 1
}

}  // namespace
}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Wrong usage ends with exit code 2 and a text that says what would be right.
#include "cli/process.h"

#include <nlohmann/json.hpp>

namespace tilewright::test {
namespace {

TEST(Usage, HelpAndVersionAreRight) {
  const Folder folder;
  const Outcome help = with_scale(folder, "--help");
  EXPECT_EQ(help.code, 0);
  for (const char* command :
       {"doctor", "list", "run", "bench", "tune", "show", "cache", "emulate"}) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
  }
  EXPECT_NE(help.out.find("0 right, 1 a comparison failed, 2 bad usage or input, 3 findings"),
            std::string::npos);
  EXPECT_EQ(with_scale(folder, "--version").out.rfind("tilewright ", 0), 0U);
  EXPECT_EQ(with_scale(folder, "run --help").code, 0);
}

TEST(Usage, WrongArgumentsAreBadUsage) {
  struct Row {
    const char* arguments;
    const char* message;
  };
  const Row rows[] = {
      {"", "tilewright: error: A subcommand is required; see tilewright --help\n"},
      {"run", "tilewright: error: OP is required; see tilewright run --help\n"},
      {"run scale --foo",
       "tilewright: error: The following argument was not expected: --foo; see tilewright run "
       "--help\n"},
      {"run scal",
       "tilewright: error: no operator is named 'scal'; this build has keep, negate, scale\n"},
      {"run scale",
       "tilewright: error: scale: there are no inputs; give --in FILE, --set NAME=@FILE or "
       "--problem N=256\n"},
      {"run scale --problem N=8 --set facto=1",
       "tilewright: error: scale: no option is named 'facto'; it has factor, defect\n"},
      {"run scale --problem N=8 --set factor=-1",
       "tilewright: error: scale: option 'factor' is '-1'; it must be a finite number of at least "
       "0 and at most 100\n"},
      {"run scale --problem N=8 --set factor=inf",
       "tilewright: error: scale: option 'factor' is 'inf'; it must be a finite number of at least "
       "0 and at most 100\n"},
      {"run scale --problem M=8",
       "tilewright: error: scale: 'M' is no size, tensor or option; sizes: N; tensors: x, y, z; "
       "options: factor, defect\n"},
      {"run scale --problem N=8 --with w",
       "tilewright: error: scale: no output is named 'w'; it has y, z\n"},
      {"run scale --problem N=8 --seed -1",
       "tilewright: error: --seed: '-1' is no whole number from 0 to 18446744073709551615; see "
       "tilewright run --help\n"},
      {"run scale --problem N=8 --input-seed 18446744073709551616",
       "tilewright: error: --input-seed: '18446744073709551616' is no whole number from 0 to "
       "18446744073709551615; see tilewright run --help\n"},
      {"run scale --in missing.npz",
       "tilewright: error: missing.npz: cannot open: No such file or directory\n"},
      {"run scale --in x.bin",
       "tilewright: error: x.bin: the file's kind is not known; use .safetensors, .npz or .npy\n"},
      {"run scale --set factor",
       "tilewright: error: --set factor: write NAME=VALUE for an option or NAME=@FILE for a "
       "tensor\n"},
  };
  const Folder folder;
  for (const Row& row : rows) {
    const Outcome outcome = with_scale(folder, row.arguments);
    EXPECT_EQ(outcome.code, 2) << row.arguments;
    EXPECT_EQ(outcome.err, row.message) << row.arguments;
    EXPECT_EQ(outcome.out, "") << row.arguments;
  }
}

TEST(Usage, TooLargeTensorsAreRefusedBeforeMemoryRunsOut) {
  const Folder folder;
  const Outcome outcome = with_scale(folder, "run scale --problem N=1000000000000000");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.rfind("tilewright: error: array: x: f32[1000000000000000] takes "
                              "4000000000000000 bytes but the host has ",
                              0),
            0U)
      << outcome.err;
  EXPECT_NE(outcome.err.find(" left; use smaller sizes\n"), std::string::npos) << outcome.err;
}

TEST(Usage, OneThingIsShownAtATime) {
  const Folder folder;
  const Outcome outcome = with_scale(folder, "show scale --ptx --sass");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("excludes"), std::string::npos) << outcome.err;
}

TEST(Usage, AFullDiskIsAnError) {
  const Folder folder;
  const Outcome outcome =
      folder.run("/bin/sh", "-c \"'" TILEWRIGHT_TEST_PROGRAM "' list >/dev/full\"");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "tilewright: error: cannot write output: No space left on device\n");
}

TEST(List, ShowsOperatorsAndTheirArguments) {
  const Folder folder;
  EXPECT_EQ(with_scale(folder, "list").out,
            "keep    x*          has a space\n"
            "negate  x*          in place\n"
            "scale   x -> y, z?  scales, for tests\n");
  EXPECT_EQ(with_scale(folder, "list scale").out,
            "scale: scales, for tests\n"
            "  y = factor * x\n"
            "tensors\n"
            "  x  input             [N]  f32  what is scaled\n"
            "  y  output            [N]  f32  factor * x\n"
            "  z  output, optional  [N]  f32  a copy of x\n"
            "options\n"
            "  factor=2     number                    what x is scaled by\n"
            "  defect=none  none|wrong|out_of_bounds  what goes wrong\n");
  const auto json = nlohmann::json::parse(with_scale(folder, "list scale --json").out);
  EXPECT_EQ(json["tensors"][2]["optional"], true);
  EXPECT_EQ(json["options"][0]["default"], "2");
}

TEST(Doctor, SaysWhatThereIsAndWhyTheRestIsNot) {
  const Folder folder;
  const Outcome outcome = with_scale(folder, "doctor");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"tilewright ", "devices ", "assemblers ", "linker ", "cache "}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
  }
  const auto json = nlohmann::json::parse(with_scale(folder, "doctor --json").out);
  EXPECT_EQ(json["operators"], 3);
  EXPECT_EQ(json["devices"].empty(), !json["no_cuda"].get<std::string>().empty());
  std::vector<nlohmann::json> tools = json["assemblers"];
  tools.push_back(json["linker"]);
  for (const auto& tool : tools)
    EXPECT_NE(tool["usable"].get<bool>(), !tool["reason"].get<std::string>().empty()) << tool;
}

}  // namespace
}  // namespace tilewright::test

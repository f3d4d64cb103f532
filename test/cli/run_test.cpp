// SPDX-License-Identifier: Apache-2.0
// `tilewright run` in the emulator: results, checks, findings, files.
#include "cli/process.h"
#include "tilewright/assembler.h"
#include "tilewright/case_file.h"
#include "tilewright/npy.h"
#include "tilewright/npz.h"
#include "tilewright/safetensors.h"

#include <nlohmann/json.hpp>

namespace tilewright::test {
namespace {

const Array kX = make_array("x", Type::f32, {3}, std::vector<double>{1, 2, 3});

TEST(Run, WritesOutputsToAFile) {
  const Folder folder;
  write_npy(folder / "x.npy", kX);
  const Outcome outcome =
      with_scale(folder, "run scale --in x.npy --set factor=3 --device emu:sm_90a --out y.npz");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<Array> outputs = read_npz(folder / "y.npz");
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_EQ(outputs[0].name, "y");
  EXPECT_EQ(to_doubles(outputs[0]), (std::vector<double>{3, 6, 9}));
}

TEST(Run, ReadsACaseAndChecksIt) {
  const Folder folder;
  write_case_file(folder / "c.safetensors",
                  {{kX},
                   {{"factor", "2"}},
                   {make_array("y", Type::f64, {3}, std::vector<double>{2, 4, 6}),
                    make_array("mean", Type::f64, {1}, std::vector<double>{2})}});
  const Outcome outcome =
      with_scale(folder, "run scale --in c.safetensors --check --device emu:sm_90a");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("check     right  y against the float64 reference: 3 elements"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("check     right  y against expect.y: 3 elements"), std::string::npos);
  EXPECT_NE(outcome.out.find("check     skipped  expect.mean: it is no output of the operator"),
            std::string::npos);
  EXPECT_NE(outcome.out.find("findings  none"), std::string::npos);
}

TEST(Run, AWrongResultEndsWithOne) {
  const Folder folder;
  const Outcome outcome = with_scale(
      folder, "run scale --problem N=100 --set defect=wrong --check --device emu:sm_90a");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("check     WRONG  y[99] against the float64 reference: is "),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("; 1 of 100 elements are wrong"), std::string::npos);
}

TEST(Run, AWrongExpectationEndsWithOne) {
  const Folder folder;
  write_case_file(folder / "c.safetensors",
                  {{kX}, {}, {make_array("y", Type::f64, {3}, std::vector<double>{2, 4, 7})}});
  const Outcome outcome =
      with_scale(folder, "run scale --in c.safetensors --check --device emu:sm_90a");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("WRONG  y[2] against expect.y: is 6, should be 7 within "),
            std::string::npos)
      << outcome.out;
}

TEST(Run, FindingsEndWithThree) {
  const Folder folder;
  const Outcome outcome = with_scale(folder,
                                     "run scale --problem N=64 --set defect=out_of_bounds --json "
                                     "--device emu:sm_90a");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_GE(json["findings"].size(), 1U);
  EXPECT_EQ(json["findings"][0]["kind"], "out_of_bounds");
  EXPECT_EQ(json["findings"][0]["severity"], "error");
}

TEST(Run, ComparesNothingAfterAccessesOutOfBounds) {
  const Folder folder;
  const std::string run = "run scale --problem N=64 --set defect=out_of_bounds --check ";
  const Outcome outcome = with_scale(folder, run + "--device emu:sm_90a");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_NE(outcome.out.find("check     not done: accesses were out of bounds\n"),
            std::string::npos)
      << outcome.out;
  const Outcome json = with_scale(folder, run + "--json --device emu:sm_90a");
  EXPECT_EQ(nlohmann::json::parse(json.out)["checks"], nlohmann::json::array());
}

TEST(Run, RefusesContentsThatAnOperatorCannotTake) {
  const Folder folder;
  write_npy(folder / "c.npy", make_array("c", Type::s32, {4}, std::vector<double>{0, 5, 3, 8}));
  const Outcome outcome = tilewright(
      folder,
      "run pooling --problem T=8,H=64,hidden=f32,B=3 --set cu_seqlens=@c.npy --device emu:sm_90a");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("pooling: cu_seqlens[2] is 3 and cu_seqlens[1] is 5; it must not "
                             "decrease"),
            std::string::npos)
      << outcome.err;
}

TEST(Run, ComputesAnOptionalOutputOnRequest) {
  const Folder folder;
  write_npy(folder / "a.npy", kX);
  const Outcome outcome = with_scale(folder,
                                     "run scale --set x=@a.npy --with z --check "
                                     "--out o.safetensors --device emu:sm_90a");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(to_doubles(SafetensorsFile(folder / "o.safetensors").read("z")),
            (std::vector<double>{1, 2, 3}));
  EXPECT_NE(outcome.out.find("z against the float64 reference: 3 elements, all equal"),
            std::string::npos)
      << outcome.out;
}

TEST(Run, CountersAreTotalsAndRows) {
  const Folder folder;
  const Outcome outcome =
      with_scale(folder, "run scale --problem N=64 --counters --json --device emu:sm_90a");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto counters = nlohmann::json::parse(outcome.out)["counters"];
  EXPECT_EQ(counters["global_read_bytes"], 256);
  EXPECT_EQ(counters["global_written_bytes"], 256);
  EXPECT_FALSE(counters["instructions"].empty());
}

TEST(Run, RepeatsUnderFurtherSchedules) {
  const Folder folder;
  const Outcome same =
      tilewright(folder, "run tile_copy --problem M=4,N=4,src=f32 --repeats 3 --device emu:sm_90a");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_NE(same.out.find("repeats   3, all of the same bits\n"), std::string::npos) << same.out;
  const std::string run =
      "run moe_dispatch --problem T=64,K=8,H=64,x=bf16,experts=16,variant=prefill,order=unordered"
      " --repeats 2 --device emu:sm_90a";
  const Outcome different = tilewright(folder, run);
  EXPECT_EQ(different.code, 1) << different.err;
  EXPECT_NE(different.out.find("repeats   2; x_perm DIFFERS, 2 times; slot DIFFERS, 2 times\n"),
            std::string::npos)
      << different.out;
  const auto json = nlohmann::json::parse(tilewright(folder, run + " --json").out)["repeats"];
  EXPECT_EQ(json["launches"], 2);
  EXPECT_EQ(json["differences"]["slot"], 2);
}

TEST(Run, RepeatsEndWithTheFirstFinding) {
  const Folder folder;
  const Outcome outcome = with_scale(folder,
                                     "run scale --problem N=64 --set defect=out_of_bounds "
                                     "--repeats 5 --device emu:sm_90a");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_EQ(outcome.out.find("repeats"), std::string::npos) << outcome.out;
}

TEST(Run, NoElementsAreLegal) {
  const Folder folder;
  const Outcome outcome = with_scale(folder, "run scale --problem N=0 --check --device emu:sm_90a");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(Run, BadFilesEndWithTwo) {
  const Folder folder;
  folder.write("x.npy", "\x93NUMPY");
  folder.write("x.safetensors", std::string(64, '\xff'));
  write_npy(folder / "half.npy", make_array("x", Type::f16, {3}));
  write_npy(folder / "matrix.npy", make_array("x", Type::f32, {3, 1}));
  struct Row {
    const char* arguments;
    const char* message;
  };
  const Row rows[] = {
      {"--in x.npy", "x.npy: ends within the header's length; it is truncated\n"},
      {"--in x.safetensors",
       "x.safetensors: header claims 18446744073709551615 bytes; the longest accepted is "
       "100000000: is it a safetensors file?\n"},
      {"--set x=@half.npy", "scale: 'x' is f16[3]; its type must be one of f32\n"},
      {"--set x=@matrix.npy", "scale: 'x' is f32[3,1]; its shape must be [N]\n"},
      {"--set w=@half.npy", "scale: no tensor is named 'w'; it has x, y, z\n"},
  };
  for (const Row& row : rows) {
    const Outcome outcome =
        with_scale(folder, std::string("run scale --device emu:sm_90a ") + row.arguments);
    EXPECT_EQ(outcome.code, 2) << row.arguments;
    EXPECT_EQ(outcome.err, std::string("tilewright: error: ") + row.message);
  }
}

TEST(Run, UnknownDevicesAreBadInput) {
  const Folder folder;
  EXPECT_EQ(with_scale(folder, "run scale --problem N=8 --device tpu:0").code, 2);
  EXPECT_EQ(with_scale(folder, "run scale --problem N=8 --device emu:sm_1").code, 2);
}

TEST(Run, ATensorInPlaceIsInputAndOutput) {
  const Folder folder;
  write_npy(folder / "x.npy", kX);
  const Outcome outcome =
      with_scale(folder, "run negate --in x.npy --check --out y.npy --device emu:sm_90a");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(to_doubles(read_npy(folder / "y.npy")), (std::vector<double>{-1, -2, -3}));
  EXPECT_NE(outcome.out.find("  inout   x: f32[3]"), std::string::npos) << outcome.out;
}

#ifdef TILEWRIGHT_FAKE_CUDA
// The stand-in for a driver answers 1.5 ms for every span of time and runs no kernel.
TEST(Bench, ReportsTimeBytesAndCeiling) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome outcome = on_fake_gpu(folder, "bench negate --shapes N=100000 --json --commit abc");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["context"]["commit"], "abc");
  const auto row = json["benchmarks"][0];
  EXPECT_EQ(row["name"], "negate N=100000");
  EXPECT_EQ(row["time_unit"], "us");
  EXPECT_EQ(row["launches"], 20);  // 1 ms worth of launches of 75 us would be 13
  EXPECT_DOUBLE_EQ(row["real_time"], 75);
  EXPECT_EQ(row["bytes"], 800000);
  EXPECT_DOUBLE_EQ(row["bytes_per_second"].get<double>(), 800000 / 75e-6);
  EXPECT_DOUBLE_EQ(row["of_ceiling"], 1);
}

TEST(Run, OnAGpuReportsTimeToo) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome outcome = on_fake_gpu(folder, "run negate --problem N=1000 --check");
  EXPECT_EQ(outcome.code, 1) << outcome.err;  // nothing ran: x is as it was
  EXPECT_NE(outcome.out.find("time      75.00 us a launch (median of 15 replays of 20 launches"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("100.0 % of a copy of as many bytes"), std::string::npos);
}

TEST(Cache, KeepsWhatWasAssembledAndRefusesWhatWasChanged) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  ASSERT_EQ(on_fake_gpu(folder, "run negate --problem N=8 --no-time").code, 0);
  const auto entries =
      nlohmann::json::parse(with_scale(folder, "cache list --json").out)["entries"];
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0]["entry"], "negate");
  EXPECT_EQ(with_scale(folder, "cache verify").code, 0);
  const std::string file = "cache/" + entries[0]["file"].get<std::string>();
  std::string bytes = folder.read(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  folder.write(file, bytes);
  const Outcome verified = with_scale(folder, "cache verify");
  EXPECT_EQ(verified.code, 3);
  EXPECT_NE(verified.out.find("REFUSED: "), std::string::npos) << verified.out;
  EXPECT_NE(with_scale(folder, "cache clear").out.find("removed 1 entry"), std::string::npos);
}
#endif

TEST(Bench, LooksAtNamesAndProblemsBeforeItLooksForAGpu) {
  const Folder folder;
  const Outcome name = with_scale(folder, "bench nosuch");
  EXPECT_EQ(name.code, 2);
  EXPECT_EQ(name.err.rfind("tilewright: error: no operator is named 'nosuch'", 0), 0U) << name.err;
  EXPECT_EQ(with_scale(folder, "bench scale --shapes N=banana").err,
            "tilewright: error: scale: 'N' is 'banana'; it is a size and must be an integer of at "
            "least 0\n");
}

TEST(Bench, WithoutAGpuSaysWhatIsMissing) {
  const Folder folder;
  const Outcome doctor = with_scale(folder, "doctor --json");
  if (!nlohmann::json::parse(doctor.out)["devices"].empty()) GTEST_SKIP() << "there is a GPU";
  const Outcome outcome = with_scale(folder, "bench scale");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.rfind("tilewright: error: bench: needs a GPU: ", 0), 0U) << outcome.err;
}

}  // namespace
}  // namespace tilewright::test

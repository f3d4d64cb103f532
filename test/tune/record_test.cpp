// SPDX-License-Identifier: Apache-2.0
// Files of winners: written, read back, and refused with the reason.
#include "tilewright/tune_record.h"

#include <gtest/gtest.h>

namespace tilewright::tune {
namespace {

std::string error_of(std::string_view text) {
  try {
    (void)parse_records(text, "f");
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Records, ReadBackAsTheyWereWritten) {
  RecordFile file{"NVIDIA H200", {}};
  Record record{.space = "rms_norm.rows",
                .keys = {{"bits", 16}, {"h", 4096}},
                .knobs = {{"threads", 256}},
                .us = 12.34,
                .standard_us = 13,
                .measured = "driver CUDA 13.0, ptxas 13.0.88, commit abc",
                .from = {}};
  put_record(file, record);
  record.keys[1].second = 128;
  record.measured = "driver CUDA 12.9";
  put_record(file, record);
  const std::string text = print_records(file);
  EXPECT_EQ(text,
            "tilewright tuned 1\n"
            "device NVIDIA H200\n"
            "measured driver CUDA 12.9\n"
            "rms_norm.rows bits=16 h=128 : threads=256 : 12.34 us, standard 13.00 us\n"
            "measured driver CUDA 13.0, ptxas 13.0.88, commit abc\n"
            "rms_norm.rows bits=16 h=4096 : threads=256 : 12.34 us, standard 13.00 us\n");
  const RecordFile again = parse_records(text, "f");
  EXPECT_EQ(again.device, "NVIDIA H200");
  EXPECT_EQ(again.records[1].from, "f:6");
  EXPECT_EQ(print_records(again), text);
}

TEST(Records, ReplaceTheOneOfTheSameProblem) {
  RecordFile file{"d", {}};
  Record record{.space = "s", .keys = {{"h", 1}}, .knobs = {{"t", 1}}, .measured = {}, .from = {}};
  put_record(file, record);
  record.knobs[0].second = 2;
  put_record(file, record);
  ASSERT_EQ(file.records.size(), 1U);
  EXPECT_EQ(file.records[0].knobs[0].second, 2);
}

TEST(Records, SkipEmptyLinesAndComments) {
  EXPECT_EQ(parse_records("# c\n\ntilewright tuned 1\n# c\ndevice d\n", "f").device, "d");
}

TEST(Records, NameAFileAfterItsDevice) {
  EXPECT_EQ(record_file_name("NVIDIA H200"), "NVIDIA_H200.tuned");
  EXPECT_EQ(record_file_name("../x"), "___x.tuned");
}

TEST(Records, RefuseWhatTheyCannotRead) {
  const std::string head = "tilewright tuned 1\ndevice d\n";
  const std::string form = "is not NAME KEY=N ... : KNOB=N ... : US us, standard US us";
  const struct {
    std::string text, error;
  } cases[] = {
      {"", "f:0: ends before 'device NAME'; records begin with 'tilewright tuned 1'"},
      {"tilewright tuned 2\n", "f:1: is not 'tilewright tuned 1'"},
      {"tilewright tuned 1\n",
       "f:1: ends before 'device NAME'; records begin with 'tilewright tuned 1'"},
      {"tilewright tuned 1\nmeasured x\n", "f:2: is not 'device NAME'"},
      {head + "s h=1 : t=2\n", "f:3: 's h=1 : t=2' " + form},
      {head + "S h=1 : t=2 : 1 us, standard 1 us\n", "f:3: 'S' is no name of a space"},
      {head + "s h=x : t=2 : 1 us, standard 1 us\n", "f:3: 'h=x' is not NAME=INTEGER"},
      {head + "s h=1 h=1 : t=2 : 1 us, standard 1 us\n", "f:3: 'h' is given twice"},
      {head + "s h=99999999999999999999 : t=2 : 1 us, standard 1 us\n",
       "f:3: 'h=99999999999999999999' is not NAME=INTEGER"},
      {head + "s a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 : t=2 : 1 us, standard 1 us\n",
       "f:3: has 9 numbers in one part; at most 8 are possible"},
      {head + "s h=1 : t=2 : 1 ms, standard 1 us\n",
       "f:3: the times are not as in '12.34 us, standard 13.00 us'"},
      {head + "s h=1 : t=2 : nan us, standard 1 us\n",
       "f:3: the times are not as in '12.34 us, standard 13.00 us'"},
      {head + "s h=1 : t=2 : 1 us, standard 1 us\ns h=1 : t=3 : 1 us, standard 1 us\n",
       "f:4: repeats the problem of f:3"},
  };
  for (const auto& each : cases)
    EXPECT_EQ(error_of(each.text), each.error) << each.text;
}

TEST(Records, ShippedFilesAreSound) {
  for (const ShippedFile& file : shipped_records()) {
    const RecordFile parsed = parse_records(file.text, file.name);
    EXPECT_EQ("tuned/" + record_file_name(parsed.device), file.name);
    EXPECT_EQ(print_records(parsed), file.text) << file.name << " is not as print_records writes";
  }
}

}  // namespace
}  // namespace tilewright::tune

// SPDX-License-Identifier: Apache-2.0
// .npz archives that NumPy wrote are read, ours come back, and damaged ones are refused.
#include "tilewright/npz.h"

#include "io/files.h"
#include "tilewright/npy.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

TEST(Npz, ReadsStoredArrays) {
  const std::vector<Array> arrays = read_npz(data_file("stored.npz"));
  ASSERT_EQ(arrays.size(), 2U);
  EXPECT_EQ(to_string(arrays[0]), "x: f32[2,3]");
  EXPECT_EQ(to_string(arrays[1]), "ids: s64[3]");
  EXPECT_EQ(to_doubles(arrays[1]), (std::vector<double>{0, 1, 2}));
}

TEST(Npz, InflatesDeflatedArrays) {
  const Array array = read_npz(data_file("deflated.npz"), "y");
  EXPECT_EQ(to_doubles(array), (std::vector<double>{-1.5, -0.5, 0.5, 1.5, 2.5, 3.5}));
  EXPECT_EQ(read_npz(data_file("deflated.npz"), "x").bytes.size(), 10000U);
}

TEST(Npz, GivesBackWhatWasWritten) {
  const Scratch scratch;
  const std::vector<Array> arrays = {make_array("x", Type::bf16, {2, 2}, std::vector<double>(4, 3)),
                                     make_array("group/y", Type::s32, {0})};
  for (Compression compression : {Compression::none, Compression::deflate}) {
    write_npz(scratch / "a.npz", arrays, compression);
    EXPECT_EQ(read_npz(scratch / "a.npz"), arrays);
  }
}

TEST(Npz, TheSameArraysGiveTheSameBytes) {
  const Scratch scratch;
  const std::vector<Array> arrays = {make_array("x", Type::f32, {100})};
  write_npz(scratch / "a.npz", arrays, Compression::deflate);
  write_npz(scratch / "b.npz", arrays, Compression::deflate);
  EXPECT_EQ(read_text(scratch / "a.npz"), read_text(scratch / "b.npz"));
  EXPECT_LT(read_text(scratch / "a.npz").size(), 400U);
}

TEST(Npz, RefusesUnknownNamesAndWrongArchives) {
  const Scratch scratch;
  const auto message = [&](const std::string& contents) {
    write_text(scratch / "x.npz", contents);
    return short_message_of(scratch.path(), [&] { read_npz(scratch / "x.npz"); });
  };
  std::string stored = read_text(data_file("stored.npz"));
  EXPECT_EQ(message("no archive at all"), "x.npz: is no valid .npz archive: Not a zip archive");
  EXPECT_EQ(message(stored.substr(0, stored.size() - 30)),
            "x.npz: is no valid .npz archive: Not a zip archive");
  const std::size_t data = stored.find("NUMPY") + 130;
  stored[data] = static_cast<char>(stored[data] ^ 1);
  EXPECT_EQ(message(stored), "x.npz: member 'x.npy' cannot be read: CRC error");
  EXPECT_EQ(short_message_of(TILEWRIGHT_SOURCE_DIR "/test/io/data",
                             [] { read_npz(data_file("stored.npz"), "w"); }),
            "stored.npz: has no array named 'w'; it has x, ids");
}

TEST(Npz, RefusesToWriteTwoArraysOfOneName) {
  const Scratch scratch;
  const std::vector<Array> arrays(2, make_array("x", Type::f32, {1}));
  EXPECT_EQ(short_message_of(scratch.path(), [&] { write_npz(scratch / "x.npz", arrays); }),
            "x.npz: cannot add 'x.npy': File already exists");
  EXPECT_FALSE(std::filesystem::exists(scratch / "x.npz"));
}

}  // namespace
}  // namespace tilewright::test

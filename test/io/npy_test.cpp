// SPDX-License-Identifier: Apache-2.0
// .npy files that NumPy wrote are read right, ours are as NumPy's, and wrong ones are refused.
#include "tilewright/npy.h"

#include "io/files.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

TEST(Npy, ReadsWhatNumpyWrote) {
  const Array array = read_npy(data_file("f4.npy"));
  EXPECT_EQ(to_string(array), "f4: f32[2,3]");
  EXPECT_EQ(to_doubles(array), (std::vector<double>{-1.5, -0.5, 0.5, 1.5, 2.5, 3.5}));
}

TEST(Npy, ReadsVersionsTwoAndThree) {
  EXPECT_EQ(to_doubles(read_npy(data_file("version2.npy"))), (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(to_string(read_npy(data_file("version3.npy"))), "version3: s8[5]");
}

TEST(Npy, TurnsFortranOrderIntoRowMajor) {
  const Array array = read_npy(data_file("fortran.npy"));
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 3, 4}));
  const std::vector<double> values = to_doubles(array);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], static_cast<double>(i));
}

TEST(Npy, ReadsTruthValuesAsBytes) {
  const Array array = read_npy(data_file("bool.npy"));
  EXPECT_EQ(array.type, Type::b8);
  EXPECT_EQ(to_doubles(array), (std::vector<double>{1, 0, 1}));
}

TEST(Npy, ReadsAScalar) {
  const Array array = read_npy(data_file("scalar_f8.npy"));
  EXPECT_TRUE(array.shape.empty());
  EXPECT_EQ(to_doubles(array), std::vector<double>{2.5});
}

TEST(Npy, ReadsRawBytesAsTheTypeThatIsSaid) {
  EXPECT_EQ(to_doubles(read_npy(data_file("bf16.npy"), Type::bf16)),
            (std::vector<double>{1, -2, 0.10009765625}));
  EXPECT_EQ(to_doubles(read_npy(data_file("e5m2.npy"), Type::e5m2)),
            (std::vector<double>{1, -2, 0.09375}));
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  const Scratch scratch;
  for (const char* name : {"f4.npy", "bool.npy", "scalar_f8.npy"}) {
    const std::string copy = scratch / name;
    write_npy(copy, read_npy(data_file(name)));
    EXPECT_EQ(read_text(copy), read_text(data_file(name))) << name;
  }
}

TEST(Npy, KeepsEveryType) {
  const Scratch scratch;
  const std::vector<double> values = {0, 1, 2, 0, 1, 2};
  for (Type type :
       {Type::b8, Type::s8, Type::s16, Type::s32, Type::s64, Type::u8, Type::u16, Type::u32,
        Type::u64, Type::f16, Type::bf16, Type::f32, Type::f64, Type::e4m3, Type::e5m2}) {
    const Array array = make_array("a", type, {3, 2}, values);
    write_npy(scratch / "a.npy", array);
    EXPECT_EQ(read_npy(scratch / "a.npy"), array) << name(type);
  }
}

TEST(Npy, KeepsEmptyArrays) {
  const Scratch scratch;
  const Array array = make_array("a", Type::f32, {0, 4});
  write_npy(scratch / "a.npy", array);
  EXPECT_EQ(read_npy(scratch / "a.npy"), array);
}

std::string with_header(const std::string& dictionary, const std::string& data = "") {
  std::string text = "\x93NUMPY";
  text += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
           static_cast<char>(dictionary.size() >> 8)};
  return text + dictionary + data;
}

TEST(Npy, RefusesWrongFilesWithTheReason) {
  struct Row {
    const char* name;
    std::string contents;
    const char* message;
  };
  const std::string four = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  const Row rows[] = {
      {"empty", "", "x.npy: is no .npy file: it does not start with '\\x93NUMPY'"},
      {"other magic", "PK\x03\x04 something",
       "x.npy: is no .npy file: it does not start with '\\x93NUMPY'"},
      {"ends in the length", std::string("\x93NUMPY\x01\x00\x76", 9),
       "x.npy: ends within the header's length; it is truncated"},
      {"version 9", std::string("\x93NUMPY\x09\x01\x00\x00{}", 12),
       "x.npy: has .npy version 9.1; versions 1 to 3 are known"},
      {"lying header length", std::string("\x93NUMPY\x01\x00\xff\x7f{}", 12),
       "x.npy: header claims 32767 bytes but the file has 12; it is truncated"},
      {"oversized header", std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14),
       "x.npy: header claims 4294967295 bytes; the longest accepted is 1048576"},
      {"no dictionary", with_header("[1, 2]"),
       "x.npy: header is no valid dictionary: expected '{' at '[1, 2]'"},
      {"no shape", with_header("{'descr': '<f4', 'fortran_order': False}"),
       "x.npy: header lacks 'shape'"},
      {"repeated key", with_header("{'descr': '<f4', 'descr': '<f4'}"),
       "x.npy: header has an unknown or repeated key 'descr'"},
      {"negative extent", with_header(four + "(-1,)}"), "x.npy: negative extent -1 in the shape"},
      {"extent over 64 bits", with_header(four + "(99999999999999999999,)}"),
       "x.npy: extent 99999999999999999999 in the shape exceeds 2^63 - 1"},
      {"product over 64 bits", with_header(four + "(4294967296, 4294967296)}"),
       "x.npy: array: shape [4294967296,4294967296] has more than 2^63 - 1 elements"},
      {"bytes over 64 bits", with_header(four + "(4611686018427387904,)}"),
       "x.npy: array: f32[4611686018427387904] has more than 2^60 - 1 bytes"},
      {"truncated data", with_header(four + "(3,)}", "12345678"),
       "x.npy: f32[3] needs 12 bytes of data but 8 follow the header; the file is truncated"},
      {"data too long", with_header(four + "(1,)}", "12345678"),
       "x.npy: f32[1] needs 4 bytes of data but 8 follow the header"},
      {"unknown dtype", with_header("{'descr': '<U8', 'fortran_order': False, 'shape': (1,)}"),
       "x.npy: dtype '<U8' is not supported; use one of b1, i1, i2, i4, i8, u1, u2, u4, u8, f2, "
       "f4, f8, bfloat16, float8_e4m3fn, float8_e5m2, float8_e8m0fnu"},
      {"text after the dictionary", with_header(four + "(1,)} x", "1234"),
       "x.npy: header is no valid dictionary: expected nothing more at 'x'"},
  };
  const Scratch scratch;
  for (const Row& row : rows) {
    write_text(scratch / "x.npy", row.contents);
    EXPECT_EQ(short_message_of(scratch.path(), [&] { read_npy(scratch / "x.npy"); }), row.message)
        << row.name;
  }
}

TEST(Npy, RefusesTypesThatNumpyHasAndWeDoNot) {
  const std::string folder = data_file("");
  const auto message = [&](const char* name, Type raw = Type::none) {
    return short_message_of(folder.substr(0, folder.size() - 1),
                            [&] { read_npy(data_file(name), raw); });
  };
  EXPECT_EQ(message("big_endian.npy"),
            "big_endian.npy: dtype '>f4' is big-endian; store it little-endian: "
            "array.astype('<f4')");
  EXPECT_EQ(message("structured.npy"),
            "structured.npy: structured dtypes are not supported; store one field");
  EXPECT_EQ(message("bf16.npy"),
            "bf16.npy: dtype '<V2' is raw bytes; say which type they are, such as bf16");
  EXPECT_EQ(message("bf16.npy", Type::f32),
            "bf16.npy: dtype '<V2' is raw bytes, 2 an element; f32 does not fit");
  EXPECT_EQ(message("nothing.npy"), "nothing.npy: cannot open: No such file or directory");
}

TEST(Npy, RefusesToWriteTypesThatNumpyLacks) {
  EXPECT_EQ(message_of([] { npy_bytes(make_array("a", Type::e2m1, {2})); }),
            "a: type e2m1 cannot be stored as .npy; use .safetensors");
}

}  // namespace
}  // namespace tilewright::test

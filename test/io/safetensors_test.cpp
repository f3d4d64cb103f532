// SPDX-License-Identifier: Apache-2.0
// Safetensors files are read right, ours are well-formed, and lying headers are refused.
#include "tilewright/safetensors.h"

#include "io/files.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

TEST(Safetensors, ReadsWhatTheFormatsOwnLibraryWrote) {
  const SafetensorsFile file(data_file("mixed.safetensors"));
  EXPECT_EQ(file.tensors().size(), 6U);
  EXPECT_EQ(to_doubles(file.read("w")), (std::vector<double>{-1.5, -0.5, 0.5, 1.5, 2.5, 3.5}));
  EXPECT_EQ(to_string(file.read("w")), "w: f32[2,3]");
  EXPECT_EQ(to_doubles(file.read("h")), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(to_doubles(file.read("i")), (std::vector<double>{-1, 7}));
  EXPECT_EQ(to_doubles(file.read("flag")), (std::vector<double>{1, 0}));
  EXPECT_EQ(to_doubles(file.read("bf")), (std::vector<double>{1, -2}));
  EXPECT_EQ(to_doubles(file.read("q")), (std::vector<double>{1, -2, 448}));
  const Metadata& metadata = file.metadata();
  EXPECT_NE(std::find(metadata.begin(), metadata.end(),
                      std::pair<std::string, std::string>("note", "made by safetensors")),
            metadata.end());
}

TEST(Safetensors, KeepsEveryType) {
  const Scratch scratch;
  std::vector<Array> arrays;
  for (Type type :
       {Type::f64, Type::s64, Type::u64, Type::f32, Type::s32, Type::u32, Type::bf16, Type::f16,
        Type::s16, Type::u16, Type::b8, Type::s8, Type::u8, Type::e4m3, Type::e5m2, Type::e2m1}) {
    arrays.push_back(
        make_array(std::string(name(type)), type, {2, 2}, std::vector<double>{0, 1, 1, 0}));
  }
  arrays.push_back(make_array("empty", Type::u8, {0, 7}));
  const Metadata metadata = {{"attrs", "{\"eps\": 1e-6}"}, {"text", "\u00fc \"quoted\""}};
  write_safetensors(scratch / "x.safetensors", arrays, metadata);
  std::vector<Array> expected = arrays;
  std::swap(expected[15], expected[16]);  // narrow elements last
  EXPECT_EQ(read_safetensors(scratch / "x.safetensors"), expected);
  EXPECT_EQ(SafetensorsFile(scratch / "x.safetensors").metadata(), metadata);
}

TEST(Safetensors, WritesAnAlignedHeaderAndAlignedTensors) {
  const Scratch scratch;
  const std::vector<Array> arrays = {make_array("a", Type::u8, {3}),
                                     make_array("b", Type::f64, {1}),
                                     make_array("c", Type::bf16, {5})};
  write_safetensors(scratch / "x.safetensors", arrays);
  const std::string text = read_text(scratch / "x.safetensors");
  EXPECT_EQ(static_cast<unsigned char>(text[0]) % 8, 0);
  const SafetensorsFile file(scratch / "x.safetensors");
  EXPECT_EQ(file.find("b")->offset % 8, 0U);
  EXPECT_EQ(file.find("c")->offset % 2, 0U);
  EXPECT_EQ(file.find("missing"), nullptr);
}

TEST(Safetensors, ReadsOneTensorOfAHugeFile) {
  const Scratch scratch;
  const std::string header =
      R"({"big":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]},)"
      R"("x":{"dtype":"F32","shape":[2],"data_offsets":[1099511627776,1099511627784]}})";
  std::string start(8, '\0');
  start[0] = static_cast<char>(header.size());
  write_text(scratch / "x.safetensors", start + header);
  // The middle of the file is a hole: a terabyte that takes no room.
  std::error_code error;
  std::filesystem::resize_file(scratch / "x.safetensors",
                               start.size() + header.size() + 1099511627784U, error);
  if (error) GTEST_SKIP() << "no sparse files here: " << error.message();
  const SafetensorsFile file(scratch / "x.safetensors");
  EXPECT_EQ(to_doubles(file.read("x")), (std::vector<double>{0, 0}));
}

std::string with_json(const std::string& header, std::size_t data_bytes = 0) {
  std::string prefix(8, '\0');
  prefix[0] = static_cast<char>(header.size() & 0xff);
  prefix[1] = static_cast<char>(header.size() >> 8);
  return prefix + header + std::string(data_bytes, 'x');
}

struct Row {
  const char* name;
  std::string contents;
  const char* message;
};

void expect_refused(std::span<const Row> rows) {
  const Scratch scratch;
  for (const Row& row : rows) {
    write_text(scratch / "x.safetensors", row.contents);
    EXPECT_EQ(
        short_message_of(scratch.path(), [&] { read_safetensors(scratch / "x.safetensors"); }),
        std::string("x.safetensors: ") + row.message)
        << row.name;
  }
}

TEST(Safetensors, RefusesWrongLengthsAndJson) {
  const Row rows[] = {
      {"empty", "", "has 0 bytes; a safetensors file begins with an 8-byte header length"},
      {"short", "1234567", "has 7 bytes; a safetensors file begins with an 8-byte header length"},
      {"lying length", std::string("\x10\0\0\0\0\0\0\0{}", 10),
       "header claims 16 bytes but the file has 10; it is truncated"},
      {"oversized length", std::string(16, '\xff'),
       "header claims 18446744073709551615 bytes; the longest accepted is 100000000: is it a "
       "safetensors file?"},
      {"no JSON", with_json("{\"a\":"), "header is no valid JSON at byte 14"},
      {"not an object", with_json("[1]"), "header is a list, not an object"},
      {"number for a tensor", with_json("{\"a\":1}"), "header has number 1 as 'a' of tensor 'a'"},
      {"deep lists", with_json("{\"a\":{\"shape\":" + std::string(200, '[') + "}}"),
       "header has a list as 'shape' of tensor 'a'"},
      {"deep objects", with_json("{\"a\":{\"b\":{\"c\":{}}}}"),
       "header has an object as 'b' of tensor 'a'"},
      {"negative extent", with_json(R"({"a":{"dtype":"U8","shape":[-1]}})"),
       "header has number -1 as 'shape' of tensor 'a'"},
      {"fractional extent", with_json(R"({"a":{"dtype":"U8","shape":[1.5]}})"),
       "header has number 1.5 as 'shape' of tensor 'a'"},
      {"metadata of numbers", with_json(R"({"__metadata__":{"a":1}})"),
       "header has number 1 as 'a' of __metadata__"},
  };
  expect_refused(rows);
}

TEST(Safetensors, RefusesTensorsThatLie) {
  const Row rows[] = {
      {"duplicate", with_json(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{}})"),
       "header has two entries named 'a'"},
      {"duplicate field", with_json(R"({"a":{"dtype":"U8","dtype":"U8"}})"),
       "header has 'dtype' twice in tensor 'a'"},
      {"no offsets", with_json(R"({"a":{"dtype":"U8","shape":[1]}})", 1),
       "tensor 'a' lacks 'data_offsets'"},
      {"three offsets", with_json(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})"),
       "tensor 'a' has 3 data_offsets; it needs 2"},
      {"unknown dtype", with_json(R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})", 8),
       "tensor 'a' has dtype 'C64'; known are F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, "
       "U16, U8, BOOL, F8_E4M3, F8_E5M2, F8_E8M0, F4"},
      {"beyond the end", with_json(R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", 8),
       "tensor 'a' has data_offsets [0,9] but the file has 8 bytes of data; it is truncated or the "
       "header is wrong"},
      {"backwards", with_json(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[5,4]}})", 8),
       "tensor 'a' has data_offsets [5,4] but the file has 8 bytes of data"},
      {"other size", with_json(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
       "tensor 'a' is F32[2] of 8 bytes but its data_offsets [0,4] span 4"},
      {"overflowing shape",
       with_json(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
       "tensor 'a' is too large: array: shape [4294967296,4294967296] has more than 2^63 - 1 "
       "elements"},
      {"extent over 63 bits",
       with_json(R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]}})"),
       "tensor 'a' has extent 9223372036854775808, over 2^63 - 1"},
      {"overlap",
       with_json(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                 6),
       "tensors 'a' and 'b' overlap at data offset 2"},
      {"a hole", with_json(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6),
       "data bytes 0..2 belong to no tensor"},
      {"trailing bytes", with_json(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 6),
       "data bytes 4..6 belong to no tensor"},
  };
  expect_refused(rows);
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  const Scratch scratch;
  const auto message = [&](std::vector<Array> arrays) {
    return short_message_of(scratch.path(),
                            [&] { write_safetensors(scratch / "x.safetensors", arrays); });
  };
  const Array good = make_array("a", Type::f32, {1});
  EXPECT_EQ(message({good, good}), "x.safetensors: cannot store a tensor named 'a' twice");
  Array reserved = good;
  reserved.name = "__metadata__";
  EXPECT_EQ(message({reserved}),
            "x.safetensors: cannot store a tensor named '__metadata__': the format reserves the "
            "name");
  Array shorter = good;
  shorter.bytes.resize(3);
  EXPECT_EQ(message({shorter}), "x.safetensors: tensor a: f32[1] holds 3 bytes; its shape needs 4");
  Array odd = good;
  odd.name = "\xff";
  EXPECT_EQ(message({odd}), "x.safetensors: a tensor's name or the metadata is not UTF-8");
}

}  // namespace
}  // namespace tilewright::test

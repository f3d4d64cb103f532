// SPDX-License-Identifier: Apache-2.0
// Reading and writing the dictionary at the start of a .npy file.
#include "io/npy_header.h"

#include "tilewright/array.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace tilewright::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestHeader = std::size_t{1} << 20;
constexpr std::size_t kAlignment = 64;  // numpy.lib.format: data start at a multiple of 64

struct TypeName {
  std::string_view npy;
  Type type;
};
// clang-format off
constexpr std::array kTypeNames = {
    TypeName{"b1", Type::b8}, TypeName{"i1", Type::s8}, TypeName{"i2", Type::s16},
    TypeName{"i4", Type::s32}, TypeName{"i8", Type::s64}, TypeName{"u1", Type::u8},
    TypeName{"u2", Type::u16}, TypeName{"u4", Type::u32}, TypeName{"u8", Type::u64},
    TypeName{"f2", Type::f16}, TypeName{"f4", Type::f32}, TypeName{"f8", Type::f64},
    // Names that the package ml_dtypes registers with NumPy.
    TypeName{"bfloat16", Type::bf16}, TypeName{"float8_e4m3fn", Type::e4m3},
    TypeName{"float8_e5m2", Type::e5m2}, TypeName{"float8_e8m0fnu", Type::ue8m0},
    // Bits without a meaning.
    TypeName{"V2", Type::b16}, TypeName{"V4", Type::b32}, TypeName{"V8", Type::b64},
};
// clang-format on

std::string known_types() {
  std::string text;
  for (const TypeName& row : kTypeNames) {
    if (row.npy.front() == 'V') continue;
    text += (text.empty() ? "" : ", ") + std::string(row.npy);
  }
  return text;
}

/// Letters as they are, other bytes as \xNN, at most 60 of them: what a message may print.
std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (char c : text.substr(0, 60)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text.size() > 60 ? out + "..." : out;
}

/// Type of raw elements of `width` bytes, as the caller says.
Type raw_type(const std::string& path, std::string_view descr, std::size_t width, Type raw) {
  if (raw != Type::none && static_cast<std::size_t>(bits(raw)) == 8 * width) return raw;
  const std::string start = "dtype '" + printable(descr) + "' is raw bytes";
  if (raw == Type::none) {
    refuse(path,
           start + "; say which type they are, such as " + (width == 1 ? "e4m3 or e5m2" : "bf16"));
  }
  refuse(path, start + ", " + std::to_string(width) + " an element; " + std::string(name(raw)) +
                   " does not fit");
}

Type type_of(const std::string& path, std::string_view descr, Type raw) {
  std::string_view word = descr;
  if (!word.empty() && word.front() == '>') {
    refuse(path, "dtype '" + printable(descr) +
                     "' is big-endian; store it little-endian: array.astype('<" +
                     printable(word.substr(1)) + "')");
  }
  const bool has_order =
      !word.empty() && (word.front() == '<' || word.front() == '|' || word.front() == '=');
  if (has_order) word.remove_prefix(1);
  if (word == "V1" || word == "f1") return raw_type(path, descr, 1, raw);
  if (word == "V2") return raw_type(path, descr, 2, raw);
  if (word == "V4") return raw_type(path, descr, 4, raw);
  if (word == "V8") return raw_type(path, descr, 8, raw);
  for (const TypeName& row : kTypeNames) {
    if (row.npy == word) return row.type;
  }
  refuse(path, "dtype '" + printable(descr) + "' is not supported; use one of " + known_types());
}

/// A reader of the few Python literals that the dictionary consists of.
class Dictionary {
 public:
  Dictionary(const std::string& path, std::string_view text) : path_(path), rest_(text) {}

  struct Contents {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::int64_t>> shape;
  };

  Contents read() {
    Contents contents;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      read_value(key, contents);
      if (!accept(',') && peek() != '}') fail("',' or '}'");
    }
    if (peek() != '\0') fail("nothing more");
    return contents;
  }

 private:
  void read_value(const std::string& key, Contents& contents) {
    if (key == "descr" && !contents.descr) {
      if (peek() == '[') refuse(path_, "structured dtypes are not supported; store one field");
      contents.descr = quoted();
    } else if (key == "fortran_order" && !contents.fortran_order) {
      contents.fortran_order = truth();
    } else if (key == "shape" && !contents.shape) {
      contents.shape = tuple();
    } else {
      refuse(path_, "header has an unknown or repeated key '" + printable(key) + "'");
    }
  }

  char peek() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) {
      rest_.remove_prefix(1);
    }
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool accept(char c) {
    if (peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("'" + std::string(1, c) + "'");
  }
  [[noreturn]] void fail(const std::string& wanted) {
    refuse(path_, "header is no valid dictionary: expected " + wanted + " at '" +
                      printable(rest_.substr(0, 20)) + "'");
  }

  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a string");
    rest_.remove_prefix(1);
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) fail("the end of a string");
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool truth() {
    peek();
    for (const auto& [word, value] :
         {std::pair{std::string_view("True"), true}, std::pair{std::string_view("False"), false}}) {
      if (rest_.substr(0, word.size()) != word) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("True or False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!accept(')')) {
      peek();
      std::int64_t extent = 0;
      const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (code == std::errc::result_out_of_range) {
        refuse(
            path_,
            "extent " +
                printable(
                    rest_.substr(0, static_cast<std::size_t>(end - rest_.data())).substr(0, 24)) +
                " in the shape exceeds 2^63 - 1");
      }
      if (code != std::errc()) fail("an extent");
      if (extent < 0) refuse(path_, "negative extent " + std::to_string(extent) + " in the shape");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      accept('L');  // written by Python 2
      shape.push_back(extent);
      if (!accept(',') && peek() != ')') fail("',' or ')'");
    }
    return shape;
  }

  const std::string& path_;
  std::string_view rest_;
};

/// The dictionary's text and where the data start.
std::string dictionary_text(const Source& source, std::uint64_t& data_offset) {
  const std::string& path = source.path();
  std::array<std::byte, 12> start{};
  const std::size_t have = static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), 12));
  source.read(0, std::span(start).first(have));
  const std::string_view magic(reinterpret_cast<const char*>(start.data()), kMagic.size());
  if (have < kMagic.size() || magic != kMagic) {
    refuse(path, "is no .npy file: it does not start with '\\x93NUMPY'");
  }
  if (have < 10) refuse(path, "ends within the header's length; it is truncated");
  const auto byte = [&start](std::size_t i) { return static_cast<std::uint64_t>(start[i]); };
  const std::uint64_t major = byte(6);
  if (major < 1 || major > 3) {
    refuse(path, "has .npy version " + std::to_string(major) + "." + std::to_string(byte(7)) +
                     "; versions 1 to 3 are known");
  }
  if (major > 1 && have < 12) refuse(path, "ends within the header's length; it is truncated");
  const std::uint64_t prefix = major == 1 ? 10 : 12;
  std::uint64_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kLongestHeader) {
    refuse(path, "header claims " + std::to_string(length) + " bytes; the longest accepted is " +
                     std::to_string(kLongestHeader));
  }
  if (length > source.size() - prefix) {
    refuse(path, "header claims " + std::to_string(length) + " bytes but the file has " +
                     std::to_string(source.size()) + "; it is truncated");
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  source.read(prefix, std::as_writable_bytes(std::span(text.data(), text.size())));
  data_offset = prefix + length;
  return text;
}

}  // namespace

NpyHeader read_npy_header(const Source& source, Type raw) {
  const std::string& path = source.path();
  NpyHeader header;
  const std::string text = dictionary_text(source, header.data_offset);
  Dictionary::Contents contents = Dictionary(path, text).read();
  if (!contents.descr || !contents.fortran_order || !contents.shape) {
    refuse(path, std::string("header lacks '") +
                     (!contents.descr           ? "descr"
                      : !contents.fortran_order ? "fortran_order"
                                                : "shape") +
                     "'");
  }
  header.type = type_of(path, *contents.descr, raw);
  header.fortran_order = *contents.fortran_order;
  header.shape = std::move(*contents.shape);
  std::int64_t total = 0;
  try {
    total = storage_bytes(header.type, header.shape);
  } catch (const Error& error) {
    refuse(path, error.message());
  }
  header.data_bytes = static_cast<std::uint64_t>(total);
  const std::uint64_t present = source.size() - header.data_offset;
  if (header.data_bytes != present) {
    refuse(path, std::string(name(header.type)) + shape_text(header.shape) + " needs " +
                     std::to_string(header.data_bytes) + " bytes of data but " +
                     std::to_string(present) + " follow the header" +
                     (present < header.data_bytes ? "; the file is truncated" : ""));
  }
  return header;
}

std::string npy_header_text(const std::string& path, Type type,
                            const std::vector<std::int64_t>& shape) {
  const auto row = std::find_if(kTypeNames.begin(), kTypeNames.end(),
                                [type](const TypeName& each) { return each.type == type; });
  if (row == kTypeNames.end()) {
    refuse(path, "type " + std::string(name(type)) + " cannot be stored as .npy; use .safetensors");
  }
  const bool single_byte = bits(type) == 8;
  const bool named = row->npy.size() > 2;
  std::string text = "{'descr': '";
  text += (named ? "" : single_byte ? "|" : "<") + std::string(row->npy);
  text += "', 'fortran_order': False, 'shape': (";
  for (std::int64_t extent : shape)
    text += std::to_string(extent) + ", ";
  if (shape.size() > 1) text.resize(text.size() - 2);
  if (shape.size() == 1) text.resize(text.size() - 1);
  text += "), }";
  const std::size_t unpadded = kMagic.size() + 4 + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text += '\n';
  if (text.size() > 0xffff) refuse(path, "rank " + std::to_string(shape.size()) + " is too large");
  std::string header(kMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace tilewright::io

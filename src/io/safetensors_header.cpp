// SPDX-License-Identifier: Apache-2.0
// Reading and checking the JSON header of a safetensors file.
#include "base/file.h"
#include "io/safetensors_types.h"
#include "tilewright/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace tilewright {
namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;  // as in the format's own implementation
constexpr std::uint64_t kPrefixBytes = 8;

/// What is collected of one tensor before it is checked.
struct Draft {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> offsets;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

/// Takes the parser's events. Anything but the two levels that the format has is refused at once,
/// so that no input makes the parser nest.
class HeaderHandler {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  HeaderHandler(const std::string& path, std::vector<Draft>& drafts, Metadata& metadata)
      : path_(path), drafts_(drafts), metadata_(metadata) {}

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a truth value"); }
  bool number_float(number_float_t, const string_t& text) { return unexpected("number " + text); }
  bool binary(binary_t&) { return unexpected("binary data"); }
  bool number_integer(number_integer_t value) {
    return unexpected("number " + std::to_string(value));
  }

  bool number_unsigned(number_unsigned_t value) {
    if (list_ == nullptr) return unexpected("number " + std::to_string(value));
    list_->push_back(value);
    return true;
  }

  bool string(string_t& value) {
    if (depth_ == 2 && in_metadata_) {
      metadata_.emplace_back(key_, std::move(value));
      return true;
    }
    if (depth_ != 2 || list_ != nullptr || key_ != "dtype") return unexpected("a string");
    drafts_.back().dtype = std::move(value);
    drafts_.back().has_dtype = true;
    return true;
  }

  bool start_object(std::size_t) {
    if (depth_ >= 2 || list_ != nullptr) return unexpected("an object");
    ++depth_;
    return true;
  }
  bool end_object() {
    --depth_;
    return true;
  }

  bool key(string_t& name) {
    if (depth_ == 1) {
      if (!names_.insert(name).second) {
        io::refuse(path_, "header has two entries named '" + name + "'");
      }
      in_metadata_ = name == "__metadata__";
      fields_.clear();
      if (!in_metadata_) drafts_.push_back({name, {}, {}, {}});
    } else if (!fields_.insert(name).second) {
      io::refuse(path_, "header has '" + name + "' twice in " + where());
    }
    key_ = std::move(name);
    return true;
  }

  bool start_array(std::size_t) {
    if (depth_ != 2 || in_metadata_ || list_ != nullptr) return unexpected("a list");
    Draft& draft = drafts_.back();
    if (key_ == "shape") {
      draft.has_shape = true;
      list_ = &draft.shape;
    } else if (key_ == "data_offsets") {
      draft.has_offsets = true;
      list_ = &draft.offsets;
    } else {
      return unexpected("a list");
    }
    return true;
  }
  bool end_array() {
    list_ = nullptr;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    io::refuse(path_, "header is no valid JSON at byte " + std::to_string(kPrefixBytes + position));
  }

 private:
  std::string where() const {
    if (depth_ == 0) return "the header";
    return in_metadata_ ? "__metadata__" : "tensor '" + drafts_.back().name + "'";
  }
  bool unexpected(const std::string& what) {
    if (depth_ == 0) io::refuse(path_, "header is " + what + ", not an object");
    io::refuse(path_, "header has " + what + " as '" + key_ + "' of " + where());
  }

  const std::string& path_;
  std::vector<Draft>& drafts_;
  Metadata& metadata_;
  std::set<std::string> names_, fields_;
  std::string key_;
  int depth_ = 0;
  bool in_metadata_ = false;
  std::vector<std::uint64_t>* list_ = nullptr;
};

std::string range_text(const std::vector<std::uint64_t>& offsets) {
  return "[" + std::to_string(offsets[0]) + "," + std::to_string(offsets[1]) + "]";
}

TensorEntry checked(const std::string& path, Draft draft, std::uint64_t data_bytes) {
  const std::string start = "tensor '" + draft.name + "' ";
  if (!draft.has_dtype || !draft.has_shape || !draft.has_offsets) {
    io::refuse(path, start + "lacks '" +
                         (!draft.has_dtype   ? "dtype"
                          : !draft.has_shape ? "shape"
                                             : "data_offsets") +
                         "'");
  }
  const std::optional<Type> type = io::type_from_safetensors(draft.dtype);
  if (!type) {
    io::refuse(
        path, start + "has dtype '" + draft.dtype + "'; known are " + io::safetensors_type_names());
  }
  if (draft.offsets.size() != 2) {
    io::refuse(path,
               start + "has " + std::to_string(draft.offsets.size()) + " data_offsets; it needs 2");
  }
  TensorEntry entry{std::move(draft.name), *type, {}};
  for (std::uint64_t extent : draft.shape) {
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      io::refuse(path, start + "has extent " + std::to_string(extent) + ", over 2^63 - 1");
    }
    entry.shape.push_back(static_cast<std::int64_t>(extent));
  }
  std::int64_t needed = 0;
  try {
    needed = storage_bytes(*type, entry.shape);
  } catch (const Error& error) {
    io::refuse(path, start + "is too large: " + error.message());
  }
  const std::uint64_t begin = draft.offsets[0];
  const std::uint64_t end = draft.offsets[1];
  if (begin > end || end > data_bytes) {
    io::refuse(path, start + "has data_offsets " + range_text(draft.offsets) +
                         " but the file has " + std::to_string(data_bytes) + " bytes of data" +
                         (begin > end ? "" : "; it is truncated or the header is wrong"));
  }
  entry.offset = begin;
  entry.size_bytes = end - begin;
  if (entry.size_bytes != static_cast<std::uint64_t>(needed)) {
    io::refuse(path, start + "is " + draft.dtype + shape_text(entry.shape) + " of " +
                         std::to_string(needed) + " bytes but its data_offsets " +
                         range_text(draft.offsets) + " span " + std::to_string(entry.size_bytes));
  }
  return entry;
}

/// The format allows neither overlaps nor bytes that belong to no tensor.
void check_layout(const std::string& path, const std::vector<TensorEntry>& tensors,
                  std::uint64_t data_bytes) {
  std::vector<const TensorEntry*> sorted;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.size_bytes > 0) sorted.push_back(&tensor);
  }
  std::sort(sorted.begin(), sorted.end(), [](const TensorEntry* a, const TensorEntry* b) {
    return a->offset != b->offset ? a->offset < b->offset : a->name < b->name;
  });
  std::uint64_t at = 0;
  const TensorEntry* before = nullptr;
  for (const TensorEntry* tensor : sorted) {
    if (tensor->offset < at) {
      io::refuse(path, "tensors '" + before->name + "' and '" + tensor->name +
                           "' overlap at data offset " + std::to_string(tensor->offset));
    }
    if (tensor->offset > at) {
      io::refuse(path, "data bytes " + std::to_string(at) + ".." + std::to_string(tensor->offset) +
                           " belong to no tensor");
    }
    at = tensor->offset + tensor->size_bytes;
    before = tensor;
  }
  if (at != data_bytes) {
    io::refuse(path, "data bytes " + std::to_string(at) + ".." + std::to_string(data_bytes) +
                         " belong to no tensor");
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> bytes,
                                           std::uint64_t file_size, const std::string& path) {
  if (file_size < kPrefixBytes || bytes.size() < kPrefixBytes) {
    io::refuse(path, "has " + std::to_string(file_size) +
                         " bytes; a safetensors file begins with an 8-byte header length");
  }
  std::uint64_t length = 0;
  for (std::size_t i = kPrefixBytes; i-- > 0;) {
    length = length << 8 | static_cast<std::uint64_t>(bytes[i]);
  }
  if (length > kLongestHeader) {
    io::refuse(path, "header claims " + std::to_string(length) +
                         " bytes; the longest accepted is " + std::to_string(kLongestHeader) +
                         ": is it a safetensors file?");
  }
  if (length > file_size - kPrefixBytes || length > bytes.size() - kPrefixBytes) {
    io::refuse(path, "header claims " + std::to_string(length) + " bytes but the file has " +
                         std::to_string(file_size) + "; it is truncated");
  }
  const std::span<const std::byte> text =
      bytes.subspan(kPrefixBytes, static_cast<std::size_t>(length));
  const char* begin = reinterpret_cast<const char*>(text.data());
  SafetensorsHeader header;
  std::vector<Draft> drafts;
  HeaderHandler handler(path, drafts, header.metadata);
  nlohmann::json::sax_parse(begin, begin + text.size(), &handler);
  const std::uint64_t data_bytes = file_size - kPrefixBytes - length;
  for (Draft& draft : drafts) {
    header.tensors.push_back(checked(path, std::move(draft), data_bytes));
  }
  check_layout(path, header.tensors, data_bytes);
  for (TensorEntry& tensor : header.tensors)
    tensor.offset += kPrefixBytes + length;
  return header;
}

}  // namespace tilewright

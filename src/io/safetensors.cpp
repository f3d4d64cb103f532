// SPDX-License-Identifier: Apache-2.0
// Tensors from and to safetensors files.
#include "tilewright/safetensors.h"

#include "base/file.h"
#include "io/safetensors_types.h"
#include "tilewright/view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace tilewright {

struct SafetensorsFile::State {
  io::Source source;
};

namespace {

SafetensorsHeader read_header(const io::Source& source) {
  constexpr std::uint64_t kLengthBytes = 8;
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(std::min<std::uint64_t>(kLengthBytes, source.size())));
  source.read(0, bytes);
  std::uint64_t length = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    length = length << 8 | static_cast<std::uint64_t>(bytes[i]);
  }
  const std::uint64_t rest = source.size() - bytes.size();
  // A length that is over the limits is refused by the parser; reading nothing for it is enough.
  if (bytes.size() == kLengthBytes && length <= rest && length <= 100'000'000) {
    bytes.resize(static_cast<std::size_t>(kLengthBytes + length));
    source.read(0, bytes);
  }
  return parse_safetensors_header(bytes, source.size(), source.path());
}

std::string header_text(const std::string& path, const std::vector<const Array*>& order,
                        const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, value] : metadata)
    header["__metadata__"][key] = value;
  std::uint64_t at = 0;
  for (const Array* array : order) {
    const std::optional<std::string_view> dtype = io::safetensors_name(array->type);
    if (!dtype) {
      io::refuse(path, "tensor '" + array->name + "' is of type " + std::string(name(array->type)) +
                           "; safetensors has " + io::safetensors_type_names());
    }
    const std::uint64_t end = at + array->bytes.size();
    header[array->name] = {{"dtype", *dtype}, {"shape", array->shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    io::refuse(path, "a tensor's name or the metadata is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

void check_array(const std::string& path, const Array& array, std::set<std::string>& names) {
  if (array.name == "__metadata__" || !names.insert(array.name).second) {
    io::refuse(path,
               "cannot store a tensor named '" + array.name + "'" +
                   (array.name == "__metadata__" ? ": the format reserves the name" : " twice"));
  }
  const std::int64_t needed = storage_bytes(array.type, array.shape);
  if (static_cast<std::uint64_t>(needed) != array.bytes.size()) {
    io::refuse(path, "tensor " + to_string(array) + " holds " + std::to_string(array.bytes.size()) +
                         " bytes; its shape needs " + std::to_string(needed));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : state_(new State{io::Source(path)}), header_() {
  try {
    header_ = read_header(state_->source);
  } catch (...) {
    delete state_;
    throw;
  }
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)), header_(std::move(other.header_)) {}

SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(header_, other.header_);
  return *this;
}

SafetensorsFile::~SafetensorsFile() { delete state_; }

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  for (const TensorEntry& tensor : header_.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

Array SafetensorsFile::read(std::string_view name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr) {
    std::string names;
    for (const TensorEntry& tensor : header_.tensors) {
      names += (names.empty() ? "" : ", ") + tensor.name;
    }
    io::refuse(state_->source.path(), "has no tensor named '" + std::string(name) + "'; it has " +
                                          (names.empty() ? "none" : names));
  }
  Array array = make_array(entry->name, entry->type, entry->shape);
  state_->source.read(entry->offset, array.bytes);
  return array;
}

std::vector<Array> read_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  std::vector<Array> arrays;
  for (const TensorEntry& tensor : file.tensors())
    arrays.push_back(file.read(tensor.name));
  return arrays;
}

void write_safetensors(const std::string& path, std::span<const Array> arrays,
                       const Metadata& metadata) {
  std::set<std::string> names;
  std::vector<const Array*> order;
  for (const Array& array : arrays) {
    check_array(path, array, names);
    order.push_back(&array);
  }
  std::stable_sort(order.begin(), order.end(), [](const Array* a, const Array* b) {
    return storage_bits(a->type) > storage_bits(b->type);
  });
  const std::string text = header_text(path, order, metadata);
  std::array<std::byte, 8> prefix{};
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    prefix[i] = static_cast<std::byte>(text.size() >> (8 * i) & 255);
  }
  std::vector<std::span<const std::byte>> chunks = {
      prefix, std::as_bytes(std::span(text.data(), text.size()))};
  for (const Array* array : order)
    chunks.emplace_back(array->bytes);
  io::write_file(path, chunks);
}

}  // namespace tilewright

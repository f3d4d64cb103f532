// SPDX-License-Identifier: Apache-2.0
// Arrays from and to .npy files.
#include "tilewright/npy.h"

#include "base/file.h"
#include "io/npy_header.h"
#include "tilewright/view.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tilewright {
namespace {

/// Elements whose first coordinate is fastest, put so that the last is.
void to_row_major(Array& array) {
  const std::size_t rank = array.shape.size();
  const std::size_t width = static_cast<std::size_t>(storage_bits(array.type)) / 8;
  if (rank < 2 || array.bytes.empty()) return;
  std::vector<std::size_t> stride(rank);  // bytes between neighbours in the file
  std::size_t step = width;
  for (std::size_t i = 0; i < rank; ++i) {
    stride[i] = step;
    step *= static_cast<std::size_t>(array.shape[i]);
  }
  std::vector<std::byte> sorted(array.bytes.size());
  std::vector<std::int64_t> coord(rank, 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < sorted.size(); to += width) {
    std::memcpy(sorted.data() + to, array.bytes.data() + from, width);
    for (std::size_t i = rank; i-- > 0;) {
      from += stride[i];
      if (++coord[i] < array.shape[i]) break;
      from -= stride[i] * static_cast<std::size_t>(array.shape[i]);
      coord[i] = 0;
    }
  }
  array.bytes = std::move(sorted);
}

std::string stem(const std::string& path) {
  const std::string file = base_name(path.c_str());
  const std::size_t dot = file.find_last_of('.');
  return dot == std::string::npos || dot == 0 ? file : file.substr(0, dot);
}

Array read(const io::Source& source, Type raw) {
  io::NpyHeader header = io::read_npy_header(source, raw);
  Array array = make_array(stem(source.path()), header.type, std::move(header.shape));
  source.read(header.data_offset, array.bytes);
  if (header.fortran_order) to_row_major(array);
  return array;
}

}  // namespace

Array read_npy(const std::string& path, Type raw) { return read(io::Source(path), raw); }

Array parse_npy(std::span<const std::byte> bytes, const std::string& path, Type raw) {
  return read(io::Source(path, bytes), raw);
}

void write_npy(const std::string& path, const Array& array) {
  const std::string header = io::npy_header_text(path, array.type, array.shape);
  const std::array chunks = {std::as_bytes(std::span(header.data(), header.size())),
                             std::span<const std::byte>(array.bytes)};
  io::write_file(path, chunks);
}

std::vector<std::byte> npy_bytes(const Array& array) {
  const std::string header = io::npy_header_text(array.name, array.type, array.shape);
  const auto start = std::as_bytes(std::span(header.data(), header.size()));
  std::vector<std::byte> bytes(start.begin(), start.end());
  bytes.insert(bytes.end(), array.bytes.begin(), array.bytes.end());
  return bytes;
}

}  // namespace tilewright

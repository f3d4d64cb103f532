// SPDX-License-Identifier: Apache-2.0
// Allocations and copies, checked against the allocation's size.
#include "tilewright/buffer.h"

#include "runtime/backend.h"

namespace tilewright {
namespace {

void check_range(const char* call, std::int64_t size_bytes, std::int64_t offset_bytes,
                 std::size_t count_bytes, SourceLoc at) {
  if (offset_bytes >= 0 && offset_bytes <= size_bytes &&
      count_bytes <= static_cast<std::size_t>(size_bytes - offset_bytes)) {
    return;
  }
  throw Error(ErrorKind::user,
              std::string(call) + ": " + std::to_string(count_bytes) + " bytes at offset " +
                  std::to_string(offset_bytes) + " do not fit a buffer of " +
                  std::to_string(size_bytes) + " bytes",
              at);
}

}  // namespace

Buffer::Buffer(const Device& device, std::int64_t size_bytes, SourceLoc at)
    : device_(device), size_bytes_(size_bytes) {
  if (size_bytes < 0) {
    throw Error(ErrorKind::user,
                "buffer of " + std::to_string(size_bytes) + " bytes; a size cannot be negative",
                at);
  }
  if (size_bytes > 0) address_ = device.backend().allocate(size_bytes, at);
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_),
      address_(std::exchange(other.address_, 0)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (address_ != 0) device_.backend().free(address_);
}

void Buffer::upload(std::span<const std::byte> source, std::int64_t offset_bytes,
                    SourceLoc at) const {
  check_range("upload", size_bytes_, offset_bytes, source.size(), at);
  if (source.empty()) return;
  device_.backend().upload(address_ + static_cast<std::uint64_t>(offset_bytes), source, at);
}

void Buffer::download(std::span<std::byte> destination, std::int64_t offset_bytes,
                      SourceLoc at) const {
  check_range("download", size_bytes_, offset_bytes, destination.size(), at);
  if (destination.empty()) return;
  device_.backend().download(destination, address_ + static_cast<std::uint64_t>(offset_bytes), at);
}

void Buffer::fill(std::byte value) const {
  if (size_bytes_ == 0) return;
  device_.backend().fill(address_, value, size_bytes_, nullptr);
  device_.backend().synchronize_stream(nullptr);
}

void copy_to_device(DeviceAddress destination, std::span<const std::byte> source,
                    const Stream& stream) {
  if (source.empty()) return;
  stream.device().backend().copy_to_device(destination, source, stream.handle());
}

void copy_to_host(std::span<std::byte> destination, DeviceAddress source, const Stream& stream) {
  if (destination.empty()) return;
  stream.device().backend().copy_to_host(destination, source, stream.handle());
}

void copy_on_device(DeviceAddress destination, DeviceAddress source, std::int64_t size_bytes,
                    const Stream& stream) {
  if (size_bytes == 0) return;
  stream.device().backend().copy_on_device(destination, source, size_bytes, stream.handle());
}

void fill(DeviceAddress destination, std::byte value, std::int64_t size_bytes,
          const Stream& stream) {
  if (size_bytes == 0) return;
  stream.device().backend().fill(destination, value, size_bytes, stream.handle());
}

}  // namespace tilewright

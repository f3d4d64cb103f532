// SPDX-License-Identifier: Apache-2.0
// Device memory that is freed with its object, and copies to and from it.
#pragma once

#include "tilewright/device.h"
#include "tilewright/stream.h"

#include <cstddef>
#include <span>
#include <vector>

namespace tilewright {

/// An address in a device's global memory.
using DeviceAddress = std::uint64_t;

/// A plain allocation, aligned to 256 bytes or more. Zero bytes allocate nothing and have address
/// 0.
class Buffer {
 public:
  Buffer(const Device& device, std::int64_t size_bytes, SourceLoc at = SourceLoc::here());
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  const Device& device() const { return device_; }
  DeviceAddress address() const { return address_; }
  std::int64_t size_bytes() const { return size_bytes_; }

  /// Blocking copies of the first source.size() or destination.size() bytes from `offset_bytes` on.
  /// Throw Error(user) where they do not fit.
  void upload(std::span<const std::byte> source, std::int64_t offset_bytes = 0,
              SourceLoc at = SourceLoc::here()) const;
  void download(std::span<std::byte> destination, std::int64_t offset_bytes = 0,
                SourceLoc at = SourceLoc::here()) const;
  void fill(std::byte value) const;

 private:
  Device device_;
  DeviceAddress address_ = 0;
  std::int64_t size_bytes_ = 0;
};

/// A buffer that holds a copy of `source`.
template <typename T>
Buffer upload(const Device& device, std::span<const T> source, SourceLoc at = SourceLoc::here()) {
  Buffer buffer(device, static_cast<std::int64_t>(source.size_bytes()), at);
  buffer.upload(std::as_bytes(source), 0, at);
  return buffer;
}
/// The whole buffer as values of T. Pre: its size is a multiple of T's.
template <typename T>
std::vector<T> download(const Buffer& buffer, SourceLoc at = SourceLoc::here()) {
  std::vector<T> values(static_cast<std::size_t>(buffer.size_bytes()) / sizeof(T));
  buffer.download(std::as_writable_bytes(std::span(values)), 0, at);
  return values;
}

/// Queued on the stream; host memory must live until it has run.
void copy_to_device(DeviceAddress destination, std::span<const std::byte> source,
                    const Stream& stream);
void copy_to_host(std::span<std::byte> destination, DeviceAddress source, const Stream& stream);
void copy_on_device(DeviceAddress destination, DeviceAddress source, std::int64_t size_bytes,
                    const Stream& stream);
void fill(DeviceAddress destination, std::byte value, std::int64_t size_bytes,
          const Stream& stream);

}  // namespace tilewright

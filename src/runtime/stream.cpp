// SPDX-License-Identifier: Apache-2.0
// Streams and events as handles over the device's own.
#include "tilewright/stream.h"

#include "runtime/backend.h"

namespace tilewright {

Stream::Stream(const Device& device)
    : Stream(device, device.backend().create_stream(), Ownership::owned) {}

Stream::Stream(const Device& device, void* handle, Ownership ownership)
    : device_(device), handle_(handle), ownership_(ownership) {}

Stream Stream::default_of(const Device& device) {
  return Stream(device, nullptr, Ownership::foreign);
}

Stream Stream::wrap(const Device& device, void* handle) {
  return Stream(device, handle, Ownership::foreign);
}

Stream::Stream(Stream&& other) noexcept
    : device_(other.device_),
      handle_(std::exchange(other.handle_, nullptr)),
      ownership_(std::exchange(other.ownership_, Ownership::foreign)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(ownership_, other.ownership_);
  return *this;
}

Stream::~Stream() {
  if (ownership_ == Ownership::owned) device_.backend().destroy_stream(handle_);
}

void Stream::synchronize() const { device_.backend().synchronize_stream(handle_); }
bool Stream::done() const { return device_.backend().stream_done(handle_); }
std::uint64_t Stream::capture_id() const { return device_.backend().capture_id(handle_); }
void Stream::wait(const Event& event) const {
  device_.backend().stream_wait(handle_, event.handle());
}

Event::Event(const Device& device) : device_(device), handle_(device.backend().create_event()) {}

Event::Event(Event&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ != nullptr) device_.backend().destroy_event(handle_);
}

void Event::record(const Stream& stream) const {
  device_.backend().record_event(handle_, stream.handle());
}
void Event::synchronize() const { device_.backend().synchronize_event(handle_); }

double elapsed_ms(const Event& start, const Event& end) {
  end.synchronize();
  return end.device().backend().elapsed_ms(start.handle(), end.handle());
}

}  // namespace tilewright

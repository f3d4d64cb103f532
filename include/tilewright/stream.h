// SPDX-License-Identifier: Apache-2.0
// Streams order work on a device; events mark and time points in them.
#pragma once

#include "tilewright/device.h"

#include <cstdint>

namespace tilewright {

class Event;

/// A queue of work. On an emulated device everything has finished when the call returns.
class Stream {
 public:
  /// A stream of its own, destroyed with the object. It and the legacy default stream wait for one
  /// another, as all streams made with the driver's default flags do.
  explicit Stream(const Device& device);
  /// The device's default stream (the legacy one on cuda devices).
  static Stream default_of(const Device& device);
  /// A CUstream that someone else owns. On an emulated device the handle is ignored.
  static Stream wrap(const Device& device, void* handle);

  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  const Device& device() const { return device_; }
  void* handle() const { return handle_; }  ///< a CUstream
  void synchronize() const;
  bool done() const;  ///< nothing is left to do
  /// The number of the capture into a graph that records what is queued; 0: there is none.
  std::uint64_t capture_id() const;
  /// What is queued from here on waits for the event.
  void wait(const Event& event) const;

 private:
  enum class Ownership : std::uint8_t { owned, foreign };
  Stream(const Device& device, void* handle, Ownership ownership);
  Device device_;
  void* handle_ = nullptr;
  Ownership ownership_ = Ownership::foreign;
};

class Event {
 public:
  explicit Event(const Device& device);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  void record(const Stream& stream) const;
  void synchronize() const;
  void* handle() const { return handle_; }  ///< a CUevent
  const Device& device() const { return device_; }

 private:
  Device device_;
  void* handle_ = nullptr;
};

/// Milliseconds from one recorded event to another, after waiting for the second; host time on an
/// emulated device.
double elapsed_ms(const Event& start, const Event& end);

}  // namespace tilewright

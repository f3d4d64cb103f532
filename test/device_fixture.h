// SPDX-License-Identifier: Apache-2.0
// The device that tests run on: $TILEWRIGHT_TEST_DEVICE, else the emulator.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/device.h"
#include "tilewright/emulator.h"
#include "tilewright/stream.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace tilewright::test {

inline std::string test_device_name() {
  const char* name = std::getenv("TILEWRIGHT_TEST_DEVICE");
  return name == nullptr || *name == '\0' ? "emu:sm_90a" : name;
}

/// A device of the test's own. The first one of a process is kept: the context of a GPU would
/// otherwise be made anew for every test.
inline Device open_test_device() {
  static const Device kept = Device::open(test_device_name());
  return Device::open(test_device_name());
}

/// A test with `device` and `stream`. On an emulated device every finding that the test has not
/// taken fails it.
class DeviceTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const emu::Diagnostic& finding : device.take_findings()) {
      ADD_FAILURE() << "unexpected finding: " << emu::to_string(finding);
    }
  }

  bool emulated() const { return device.kind() == DeviceKind::emulated; }

  Device device = open_test_device();
  Stream stream{device};
};

}  // namespace tilewright::test

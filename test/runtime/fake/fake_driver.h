// SPDX-License-Identifier: Apache-2.0
// Opens devices on the fake CUDA driver, which every test of this program uses.
#pragma once

#include "runtime/fake/fake_cuda.h"
#include "tilewright/device.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace tilewright::test {

/// Each test begins without a current context, a failing call or anything alive on the driver.
class FakeDriver : public ::testing::Test {
 protected:
  FakeDriver() {
    setenv("TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA, 1);
    void* library = dlopen(TILEWRIGHT_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    bind(library, status_, "fake_cuda_status");
    bind(library, fail, "fake_cuda_fail");
    bind(library, set_current, "fake_cuda_set_current");
    *status_() = {};
    set_current(nullptr);
    fail("", 0);
  }

  FakeCudaStatus& status() { return *status_(); }
  void (*fail)(const char*, int) = nullptr;
  void (*set_current)(void*) = nullptr;

 private:
  template <typename F>
  static void bind(void* library, F*& slot, const char* name) {
    slot = reinterpret_cast<F*>(dlsym(library, name));
    ASSERT_NE(slot, nullptr) << name;
  }
  FakeCudaStatus* (*status_)() = nullptr;
};

/// The message of the Error that `body` throws; "" if it throws none.
template <typename Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

}  // namespace tilewright::test

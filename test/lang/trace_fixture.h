// SPDX-License-Identifier: Apache-2.0
// Traces for tests of the language: small kernels as PTX text, and the errors of mistakes.
#pragma once

#include "golden.h"
#include "tilewright/module.h"
#include "tilewright/trace.h"

#include <gtest/gtest.h>
#include <string>

namespace tilewright::test {

/// A vector of `size` elements, its address aligned to 16 bytes.
inline TensorArg vector_arg(Type type, std::int64_t size) {
  return {type, Shape{Int(size)}, Stride{Int(1)}, 16};
}

/// Traces `body` for a block of 128 threads and compares its PTX with test/golden/lang/NAME.ptx.
template <class Body, class... Args>
void expect_ptx(const std::string& name, ptx::Target target, const Body& body,
                const Args&... args) {
  TraceOptions options{.name = name, .target = target, .block = {128, 1, 1}};
  Traced traced = trace(options, body, args...);
  expect_golden("lang/" + name + ".ptx", ptx::print(traced.module()));
}

/// The message of the Error that tracing `body` throws; fails without one.
template <class Body, class... Args>
std::string error_of(TraceOptions options, const Body& body, const Args&... args) {
  try {
    trace(options, body, args...);
  } catch (const Error& error) {
    EXPECT_GT(error.where().line, 0) << error.message() << " has no line";
    return error.message();
  }
  ADD_FAILURE() << "nothing was wrong";
  return {};
}
template <class Body, class... Args>
std::string error_of(const Body& body, const Args&... args) {
  return error_of(TraceOptions{.name = "mistake", .target = {90, 'a'}, .block = {128, 1, 1}}, body,
                  args...);
}

}  // namespace tilewright::test

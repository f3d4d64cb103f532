// SPDX-License-Identifier: Apache-2.0
// From the library's errors and findings to Python's exceptions.
#pragma once

#include "tilewright/diagnostic.h"

#include <exception>
#include <nanobind/nanobind.h>
#include <span>
#include <vector>

namespace tilewright::python {

/// Becomes tilewright.FindingsError: the emulator ran the kernel and found errors in it.
class Findings : public std::exception {
 public:
  explicit Findings(std::vector<emu::Diagnostic> found) : found_(std::move(found)) {}
  const char* what() const noexcept override { return "the emulator found errors"; }
  const std::vector<emu::Diagnostic>& found() const { return found_; }

 private:
  std::vector<emu::Diagnostic> found_;
};

/// A list of tilewright.Finding.
nanobind::list finding_list(std::span<const emu::Diagnostic> findings);

/// Functions of nanobind's turn Error(user) into ValueError, other Errors into RuntimeError, with
/// the same text, and Findings into FindingsError. Once a module.
void register_errors();

/// The same for functions that CPython calls itself, and whatever else was thrown.
void set_python_error(const std::exception_ptr& thrown) noexcept;

}  // namespace tilewright::python

// SPDX-License-Identifier: Apache-2.0
// An operator as a callable of Python's: what tilewright.ops has, and extensions of users.
#pragma once

#include "python/framework.h"
#include "tilewright/operator.h"

#include <cstddef>
#include <memory>
#include <nanobind/nanobind.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tilewright::python {

/// The arguments of a call, as CPython's vectorcall passes them.
struct Given {
  std::span<PyObject* const> positional;
  std::span<PyObject* const> keywords;  ///< their values
  nanobind::handle names;               ///< of the keywords: a tuple, or null where there are none
};

/// What a call makes for one problem in one place of a library, and how, once it was made.
struct Outputs {
  std::vector<OutputSpec> specs;
  mutable std::vector<std::optional<Maker>> makers;  ///< one for each; under the GIL
};

/// One tensor of a call.
struct Slot {
  std::optional<Tensor> tensor;
  bool wanted = false;  ///< an optional output, asked for by True
  bool made = false;    ///< by the call
};

/// Inputs and inouts are positional in the schema's order, or keywords; options and outputs are
/// keywords. Outputs that are not given are made by the library of the first tensor; optional ones
/// where their keyword is True. The result is the outputs in the schema's order: one, or a tuple.
class OperatorCall {
 public:
  /// Pre: the operator outlives it.
  explicit OperatorCall(const Operator& op);

  nanobind::object call(const Given& given) const;
  /// call() with the result as a dict of the outputs by name.
  nanobind::dict named(const Given& given) const;
  /// Seconds that C++ takes for `count` calls with the same tensors on a GPU, from setting the
  /// arguments to the launch: what bench/peers/call_cost.py compares with.
  double seconds_in_cpp(std::int64_t count, const Given& given) const;

  /// What call() would make, [(name, type, shape)], from descriptions {name: (type, shape,
  /// strides)} of the inputs and the options.
  nanobind::list outputs(const nanobind::dict& inputs, const nanobind::dict& options) const;

  const Operator& op() const { return op_; }
  const Arguments& defaults() const { return defaults_; }
  /// Operator::outputs after the schema's checks, remembered for the last few problems. `slots`,
  /// `options`, the text of those that are given, and the first tensor's place are what decides.
  std::shared_ptr<const Outputs> outputs_of(const Arguments& arguments, std::span<const Slot> slots,
                                            const std::string& options, const Framework& framework,
                                            const Tensor& first) const;
  const std::vector<std::size_t>& positional() const { return positional_; }
  /// The index of a tensor, the number of tensors plus that of an option, or -1.
  std::ptrdiff_t find(nanobind::handle keyword) const;

 private:
  const Operator& op_;
  Arguments defaults_;                   ///< no tensors
  std::vector<std::size_t> positional_;  ///< indices of inputs and inouts
  nanobind::dict keywords_;
  struct Seen {
    std::vector<std::optional<View>> tensors;
    std::string options;
    const Framework* framework = nullptr;
    Place place = Place::host;
    int device_id = 0;
    std::shared_ptr<const Outputs> outputs;
  };
  mutable std::vector<Seen> seen_;  ///< under the GIL
  mutable std::size_t oldest_ = 0;
};

/// Registers the class Operator in a module; `tilewright` has to be importable. Once a module.
void bind_operator_call(nanobind::module_& module);

/// Adds a function that calls the operator to the module, under its name; `__self__` of the
/// function is an Operator, which has the schema.
void add_operator(nanobind::module_& module, const Operator& op);

}  // namespace tilewright::python

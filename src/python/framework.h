// SPDX-License-Identifier: Apache-2.0
// Libraries of arrays (PyTorch, NumPy, CuPy, JAX): how their tensors are read and made.
#pragma once

#include "python/exchange.h"
#include "tilewright/operator.h"

#include <cstdint>
#include <map>
#include <nanobind/nanobind.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright::python {

enum class Place : std::uint8_t { host, cuda };

/// A tensor of Python's.
struct Tensor {
  View view;  ///< of host memory, too
  Place place = Place::host;
  int device_id = 0;
  bool read_only = false;
  nanobind::object owner;    ///< the tensor
  nanobind::object export_;  ///< what keeps an exported description alive
};

/// One library, from the adapter that tilewright._frameworks has for it.
class Framework {
 public:
  /// The library that a tensor's type comes from; remembered for each type.
  static const Framework& of(nanobind::handle tensor);

  /// Throws Error(user) that names the tensor `spec` where it is none, or of a type or rank that
  /// the library does not have. Unsigned integers stand for the one type of the schema that NumPy
  /// lacks.
  Tensor read(nanobind::handle object, const TensorSpec& spec) const;

  /// A new tensor without contents in the place of `like`.
  nanobind::object empty(const OutputSpec& output, const Tensor& like) const;
  /// Bytes that are 0, on a GPU.
  nanobind::object zeros(std::int64_t bytes, int device_id) const;
  std::uint64_t address(nanobind::handle zeros) const;
  void* stream(int device_id) const;
  /// Whether the library queues its own work on stream(); if not, the host has to wait for a
  /// launch.
  bool uses_streams() const { return uses_streams_; }

 private:
  Framework(nanobind::handle type, nanobind::object adapter);
  void describe(nanobind::handle object, const TensorSpec& spec, Tensor& tensor) const;

  nanobind::object type_, adapter_, describe_, capsule_, stream_, like_;
  mutable std::map<std::pair<Type, int>, nanobind::object> makers_;  ///< under the GIL
  bool uses_streams_ = true;
  const ExchangeApi* api_ = nullptr;
};

}  // namespace tilewright::python

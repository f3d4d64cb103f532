// SPDX-License-Identifier: Apache-2.0
// Libraries of arrays (PyTorch, NumPy, CuPy, JAX): how their tensors are read and made.
#pragma once

#include "python/exchange.h"
#include "tilewright/operator.h"

#include <cstdint>
#include <nanobind/nanobind.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

/// A call of Python's that makes a tensor of one type and shape without contents, got ready once.
struct Maker {
  nanobind::object function, arguments;
  /// Another for when the library's current device is the tensor's; null where there is none.
  nanobind::object function_here, arguments_here;
};

/// One library, from the adapter that tilewright._frameworks has for it.
class Framework {
 public:
  /// The library that a tensor's type comes from, or that of the bytes of Fp4Pairs; remembered for
  /// each type.
  static const Framework& of(nanobind::handle tensor);

  /// Throws Error(user) that names the tensor `spec` where it is none, or of a type or rank that
  /// the library does not have. Unsigned integers stand for the one type of the schema that NumPy
  /// lacks.
  /// Pre: this is the library of the object.
  Tensor read(nanobind::handle object, const TensorSpec& spec) const;

  /// Of tensors in the place of `like`.
  Maker maker(const OutputSpec& output, const Tensor& like) const;
  /// Pre: `like` is in the place that the maker is for.
  nanobind::object make(const Maker& maker, const Tensor& like) const;
  /// Bytes that are 0, on a GPU.
  nanobind::object zeros(std::int64_t bytes, int device_id) const;
  std::uint64_t address(nanobind::handle zeros) const;
  void* stream(int device_id) const;
  /// Whether the library queues its own work on stream(); if not, the host has to wait for a
  /// launch.
  bool uses_streams() const { return uses_streams_; }

 private:
  Framework(nanobind::handle type, nanobind::object adapter);
  Tensor read_bare(nanobind::handle object, const TensorSpec& spec) const;
  void describe(nanobind::handle object, const TensorSpec& spec, Tensor& tensor) const;

  nanobind::object type_, adapter_, describe_, capsule_, stream_, current_device_;
  bool uses_streams_ = true;
  const ExchangeApi* api_ = nullptr;
};

}  // namespace tilewright::python

// SPDX-License-Identifier: Apache-2.0
// Small problems of every operator of the registry, made from those that it is measured with.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/device.h"
#include "tilewright/operator.h"

#include <string>
#include <vector>

namespace tilewright::test {

/// An operator's arguments on a device, from a problem's text.
class PlacedProblem {
 public:
  PlacedProblem(const Device& device, const Operator& op, const std::string& problem);
  /// Launches once and waits. Throws what the operator throws.
  void launch();
  /// Twice in a row on one stream, the second time with other inputs: it writes other numbers.
  void launch_twice();
  bool has_inputs() const;

 private:
  void add(std::string_view name, Type type, const std::vector<std::int64_t>& shape);

  Device device_;
  const Operator* op_;
  Problem problem_;
  Arguments arguments_;
  std::vector<Array> inputs_;
  std::vector<Buffer> buffers_;
};

/// The operator's first problem with its sizes reduced as far as it takes, the same with wide rows,
/// one with other types or options, and one with many rows. Empty if it takes none of them.
std::vector<std::string> small_problems(const Operator& op);

/// The same with problems of all types and options that the operator is measured with.
std::vector<std::string> problems_of_every_kind(const Operator& op);

/// What the operator says to its first bench problem where small_problems is empty.
std::string why_none(const Operator& op);

}  // namespace tilewright::test

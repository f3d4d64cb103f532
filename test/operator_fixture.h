// SPDX-License-Identifier: Apache-2.0
// Runs an operator on arrays, with rows apart and addresses off as a test wants, and compares.
#pragma once

#include "device_fixture.h"
#include "tilewright/operator.h"

#include <string>
#include <utility>
#include <vector>

namespace tilewright::test {

/// How tensors lie in memory.
struct Placement {
  std::int64_t row_padding = 0;   ///< elements between rows
  std::int64_t offset_elems = 0;  ///< of the first element from an aligned address
};

using Options = std::vector<std::pair<std::string, std::string>>;

class OperatorTest : public DeviceTest {
 protected:
  /// The part of the operator's tolerance that run() allows results: less than 1 where a contract
  /// allows more than the kernels need on a test's inputs.
  double allowed_part = 1;

  /// Runs on `inputs` and compares outputs and inouts with the reference; returns the outputs.
  std::vector<Array> run(const Operator& op, const std::vector<Array>& inputs,
                         const Options& options = {}, Placement placement = {});

  /// run() with every candidate of every space that the operator's plan looks up.
  void run_candidates(const Operator& op, const std::vector<Array>& inputs,
                      const Options& options = {}, Placement placement = {});

  /// run() in $TILEWRIGHT_EMU_SEEDS (3) schedules of the emulator, with all blocks resident and
  /// with as many as the device holds; once on a GPU.
  void run_schedules(const Operator& op, const std::vector<Array>& inputs,
                     const Options& options = {});

  /// The error text of a run that must be refused before anything is launched.
  std::string refusal(const Operator& op, const std::vector<Array>& inputs,
                      const Options& options = {});

  /// Reproducible numbers: near normal for floats, 0 to 99 for integers.
  static Array random(std::string name, Type type, std::vector<std::int64_t> shape,
                      double scale = 1, std::uint64_t seed = 1);
  /// The input of that name, which is there.
  static Array& named(std::vector<Array>& inputs, std::string_view name);
  static void remove(std::vector<Array>& inputs, std::string_view name);

 private:
  struct Placed {
    Buffer memory;
    View view;
  };
  Placed place(const Array& array, Placement placement);
  Placed reserve(Type type, const std::vector<std::int64_t>& shape, Placement placement);
  static Array fetch(const Placed& placed, const std::string& name);
};

}  // namespace tilewright::test

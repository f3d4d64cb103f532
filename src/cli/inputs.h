// SPDX-License-Identifier: Apache-2.0
// From the command line to an operator's inputs and options: files, --set, --problem.
#pragma once

#include "cli/program.h"
#include "tilewright/array.h"
#include "tilewright/operator.h"
#include "tune/session.h"

#include <string>
#include <utility>
#include <vector>

namespace tilewright::cli {

/// What the commands that take an operator's arguments share.
struct InputRequest {
  std::string op;
  std::vector<std::string> files;  ///< --in
  std::vector<std::string> sets;   ///< --set NAME=VALUE or NAME=@FILE
  std::string problem;             ///< --problem T=8,H=4096
  std::uint64_t seed = 0;          ///< of inputs made for a problem
};
void add_input_options(CLI::App& command, InputRequest& request);

/// Everything that a run needs from the host.
struct Inputs : tune::Inputs {
  std::vector<Array> expected;  ///< of case files: right outputs

  /// `names`, and the outputs that have an expected value.
  std::vector<std::string> wanted(std::vector<std::string> names) const;
};
/// Reads files, then applies settings. Without any, an Error(user) says how to give inputs.
Inputs load_inputs(const Program& program, const InputRequest& request);

/// All arrays of "x.npy", "x.npz" or "x.safetensors"; "x.npz#name" is one of them, ":TYPE" after
/// the file says what raw bytes are.
std::vector<Array> read_arrays(const std::string& spec);

/// Writes ".safetensors", ".npz", or, for a single array, ".npy".
void write_arrays(const std::string& path, const std::vector<Array>& arrays);

}  // namespace tilewright::cli

// SPDX-License-Identifier: Apache-2.0
// A test case of an operator in one safetensors file: inputs, options and expected outputs.
#pragma once

#include "tilewright/array.h"

#include <string>
#include <utility>
#include <vector>

namespace tilewright {

/// Tensors named `expect.NAME` are expected outputs; the others are inputs. The metadata entry
/// `attrs` is a JSON object of scalar options; an option whose value is null is absent.
struct CaseFile {
  std::vector<Array> inputs;
  std::vector<std::pair<std::string, std::string>> attrs;  ///< name, value as it would be typed
  std::vector<Array> expected;                             ///< without the prefix
};

/// Throws Error(user) that starts with the path.
CaseFile read_case_file(const std::string& path);
void write_case_file(const std::string& path, const CaseFile& contents);

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// JSON output of the commands.
#pragma once

#include "cli/text.h"

#include <nlohmann/json.hpp>

namespace tilewright::cli {

using Json = nlohmann::ordered_json;

/// Bytes that are not UTF-8 (file names, text in PTX) are replaced rather than refused.
inline void print_json(const Json& json) {
  print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace tilewright::cli

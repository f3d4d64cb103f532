// SPDX-License-Identifier: Apache-2.0
// The names that safetensors gives to element types.
#pragma once

#include "tilewright/type.h"

#include <optional>
#include <string>
#include <string_view>

namespace tilewright::io {

std::optional<Type> type_from_safetensors(std::string_view name);
/// Nothing for a type that the format does not have.
std::optional<std::string_view> safetensors_name(Type type);
std::string safetensors_type_names();

}  // namespace tilewright::io

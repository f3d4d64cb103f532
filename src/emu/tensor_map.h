// SPDX-License-Identifier: Apache-2.0
// Reading and editing encoded tensor maps.
#pragma once

#include "tilewright/tensor_map.h"

#include <optional>
#include <string_view>

namespace tilewright::emu::detail {

/// Nothing if the bytes are no tensor map of ours.
std::optional<TensorMap> decode_tensor_map(const EncodedTensorMap& bytes);
/// The encoding without checks: tensormap.replace makes maps step by step.
EncodedTensorMap pack_tensor_map(const TensorMap& map);
/// tensormap.replace.tile.FIELD: false for a value that the field cannot have.
bool replace_field(TensorMap& map, std::string_view field, int ordinal, std::uint64_t value);

}  // namespace tilewright::emu::detail

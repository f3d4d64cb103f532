// SPDX-License-Identifier: Apache-2.0
// Between tensors as DLPack lays them out and views.
#pragma once

#include "tilewright.h"
#include "tilewright/view.h"

#include <string>

namespace tilewright::c {

/// Throws Error(user) that names the tensor for a type, rank or device that it cannot have.
View view_of(const tw_tensor& tensor, const std::string& name);

/// DLPack's code and bits of an element type.
struct DlType {
  std::uint8_t code;
  std::uint8_t bits;
};
DlType dl_type(Type type);

}  // namespace tilewright::c

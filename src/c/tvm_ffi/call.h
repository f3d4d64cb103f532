// SPDX-License-Identifier: Apache-2.0
// A call of an operator by TVM-FFI's calling convention.
#pragma once

#include "tilewright/operator.h"

#include <tvm/ffi/c_api.h>

namespace tilewright::c {

/// Tensors by the schema's order, None for what is absent; then names, each with its value, of
/// further tensors and of options. 0, or -1 with TVM-FFI's error set.
int call_by_tvm_ffi(const Operator& op, const TVMFFIAny* arguments, std::int32_t count,
                    TVMFFIAny* result) noexcept;

}  // namespace tilewright::c

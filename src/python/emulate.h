// SPDX-License-Identifier: Apache-2.0
// Any PTX text run by the emulator, for tilewright.emulate.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::python {

void bind_emulate(nanobind::module_& module);

}  // namespace tilewright::python

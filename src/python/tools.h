// SPDX-License-Identifier: Apache-2.0
// Layouts, the emulator, tuning, the cache and the machine's state for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::python {

void bind_tools(nanobind::module_& module);

}  // namespace tilewright::python

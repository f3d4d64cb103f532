// SPDX-License-Identifier: Apache-2.0
// Effects without a meaning here yet: executing one is a finding that names it.
#include "emu/handlers.h"

namespace tilewright::emu::detail {

Flow exec_multimem(Exec& x, const Inst& in) { return exec_unsupported(x, in); }

}  // namespace tilewright::emu::detail

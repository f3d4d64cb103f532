// SPDX-License-Identifier: Apache-2.0
// Atomics that a whole warp executes at once: those that hand nothing on and take nothing.
#pragma once

#include "emu/access.h"

namespace tilewright::emu::detail {

/// An atom or red; operands by number, -1: absent.
struct Update {
  Exec& x;
  const Inst& in;
  const OpInfo& info;
  int address, value, compare, result;

  const Slot& slot(int operand, int i) const {
    return in.slot[info.start[static_cast<std::size_t>(operand)] + static_cast<unsigned>(i)];
  }
  /// Atomics are strong, also those that name no scope.
  Strength strength() const {
    const Strength s = strength_of(info);
    return s == Strength::weak ? Strength::gpu : s;
  }
};

/// Updates 32 consecutive elements. False, with nothing done, if they are none or some lane needs a
/// closer look.
bool update_row(const Update& u);
/// The same of elements anywhere in one page, or in shared memory.
bool update_scattered(const Update& u, const Addresses& a);

}  // namespace tilewright::emu::detail

// SPDX-License-Identifier: Apache-2.0
// mbarrier objects: arrivals, transaction counts, phases.
#pragma once

#include "emu/access.h"

namespace tilewright::emu::detail {

/// The mbarrier at a shared address, after checks of address and initialisation; null if reported.
Mbarrier* find_mbarrier(Exec& x, unsigned lane, Space space, std::uint64_t address);
/// fence.mbarrier_init: what the lanes have initialised is known behind the next cluster barrier,
/// at which they may arrive relaxed.
void fence_inits(Exec& x);
/// They arrive: those who wait for this phase, from 1, know of it.
void publish_inits(Exec& x, std::uint64_t phase);
/// Completes the phase if nothing is pending any more.
void settle(Run& run, Mbarrier& m);
void complete_tx(Run& run, Mbarrier& m, std::int64_t bytes, const SnapshotRef& released);
/// The block that owns a shared address.
Block* owner_of(const Exec& x, std::uint64_t address);

}  // namespace tilewright::emu::detail

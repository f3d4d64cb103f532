// SPDX-License-Identifier: Apache-2.0
// Asynchronous operations in flight: when their data moves, and who knows that it has.
#pragma once

#include "emu/grid.h"
#include "emu/race.h"

namespace tilewright::emu::detail {

/// Delivers the operation now or later, as Options::delivery says.
void enqueue(Exec& x, AsyncOp op);
/// Delivers one pending operation, chosen by the seed. False: none is pending.
bool deliver_something(Run& run);
/// Delivers the bulk groups of a thread up to a number.
void deliver_groups(Run& run, const Block& block, std::uint32_t thread, std::uint64_t last);

/// A fresh agent for a bulk operation of the running block.
BulkAgent take_agent(Block& block);
/// What a waiter learns when the operation of that agent is complete.
SnapshotRef completion(const Block& block, BulkAgent agent);
Actor bulk_actor(Exec& x, unsigned lane, BulkAgent agent, std::string_view name);

}  // namespace tilewright::emu::detail

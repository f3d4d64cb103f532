// SPDX-License-Identifier: Apache-2.0
// Two accesses that overlap: does one precede the other, and what is said if not.
#pragma once

#include "emu/race.h"

#include <cstdint>

namespace tilewright::emu::detail {

/// What accesses, and how.
struct Party {
  Exec& x;
  unsigned lane;
  const ShadowTarget& target;
  Access access;
  Strength strength;
  const Actor& actor;
  std::uint32_t pc;  ///< with its size
};

/// An earlier access that conflicts.
struct Conflict {
  Record record;
  std::uint32_t thread = 0;  ///< agent of the other access
  std::uint32_t pc = 0;      ///< with its size
  bool other_writes = false;
  std::uint64_t word = 0;    ///< from the target's
  std::uint32_t bytes = 15;  ///< of the word that both access
  bool equal = false;        ///< both write the same
};

/// Records of blocks that used the same shared memory before, or of launches that have ended as far
/// as the actor knows.
bool stale(const Exec& x, const ShadowTarget& target, std::uint32_t block, const Actor& actor);
bool knows_agent(const Exec& x, std::uint32_t block, std::uint32_t agent, std::uint32_t epoch,
                 const Actor& actor);
/// May the asynchronous proxy see the write?
bool async_knows(const Exec& x, const ShadowTarget& target, Record r, const Actor& actor);
/// Strong accesses with scopes that include each other, of the same bytes: they do not race. Lanes
/// of a warp that exchange values by volatile ones do wait for an order that nothing promises.
bool is_exempt(const Party& a, Record other, std::uint32_t other_pc);

void report_conflict(const Party& a, const Conflict& c);
void report_proxy(const Party& a, const Conflict& c);
/// A write of the asynchronous proxy behind a generic read, with no proxy fence between.
void report_overtaken(const Party& a, const Conflict& c);
/// Are such writes looked for here?
bool checks_overtaken(const Exec& x, Access access, const Actor& actor);

}  // namespace tilewright::emu::detail

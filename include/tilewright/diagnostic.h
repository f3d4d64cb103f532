// SPDX-License-Identifier: Apache-2.0
// What the emulator reports: kinds, severities, and a finding with its places and the other access.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::emu {

/// Kinds of findings; `name(kind)` is stable in text and JSON.
enum class Kind : std::uint8_t {
  out_of_bounds,       ///< address outside every allocation, or of the wrong state space
  misaligned,          ///< address not a multiple of the access size
  use_after_free,      ///< address in freed memory
  uninitialized_read,  ///< memory, or a register at a use that matters
  race,                ///< two accesses, one a write, that no synchronisation orders
  unordered,           ///< lanes of one warp that rely on lockstep
  barrier_divergence,  ///< an aligned barrier or collective that a part of the warp executes
  barrier_mismatch,    ///< barriers used with different or impossible thread counts
  deadlock,            ///< every thread waits; the message holds the wait-for graph
  async_in_flight,     ///< memory or registers of an asynchronous operation touched before its wait
  exit_in_flight,      ///< threads or a block that ended before an asynchronous operation did
  proxy_fence,         ///< generic writes seen by the asynchronous proxy without a proxy fence
  mbarrier_misuse,     ///< an mbarrier used before init, re-initialised, over-arrived, ...
  shuffle_mask,  ///< a lane mask that does not fit the lanes that arrive, or a bad source lane
  illegal_instruction,  ///< not on this target, operands it forbids, a trap, or not supported here
  limit,                ///< a limit of Options::limits was reached
  overtaken_read,       ///< generic reads that a write of the asynchronous proxy may overtake; off
                        ///< unless it is asked for by name
};
constexpr int kKinds = 17;
std::string_view name(Kind kind);
std::optional<Kind> kind_from_name(std::string_view name);

/// How bad: a defect; undefined by the manual though hardware tolerates it; or only a hint.
enum class Severity : std::uint8_t { error, undefined, advice };
std::string_view name(Severity severity);

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  friend bool operator==(const Dim3&, const Dim3&) = default;
};

/// A line of C++ source (from `.loc`); `inlined_at` of a Place lists the callers, innermost first.
struct SourceLine {
  std::string file;
  std::uint32_t line = 0;
  friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

/// Where one access happened.
struct Place {
  SourceLine source;  ///< empty file: no `.loc`
  std::vector<SourceLine> inlined_at;
  std::uint32_t ptx_line = 0;
  std::string instruction;  ///< "st.shared.u32"
  Dim3 block{0, 0, 0};
  Dim3 thread{0, 0, 0};
  std::string agent;  ///< "" for a thread; "cp.async", "bulk copy", "wgmma", "host"
};

/// The bytes concerned; `space` as PTX spells it, `object` the allocation or variable and offset.
struct Range {
  std::string space;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::string object;
};

struct Diagnostic {
  Kind kind = Kind::limit;
  Severity severity = Severity::error;
  std::string message;
  std::string entry;  ///< the kernel
  Place place;
  std::optional<Range> range;
  std::optional<Place> other;  ///< the other party of a race, an unfinished copy, ...
  std::uint64_t count = 1;     ///< how often this kind occurred at this instruction
};

/// "norm.cpp:58: error: out_of_bounds: ld.shared.f32: thread (37,0,0) of block (0,0,0) ..."
std::string to_string(const Diagnostic& finding);

}  // namespace tilewright::emu

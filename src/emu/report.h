// SPDX-License-Identifier: Apache-2.0
// Collects findings: one for each kind and instruction, with the number of times it occurred.
#pragma once

#include "tilewright/emulator.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tilewright::emu::detail {

struct Exec;
struct Grid;
struct Block;
struct Code;

class Reporter {
 public:
  /// Counts the finding if its kind is known at that pc; else returns a new one to fill in, valid
  /// until the next call. Null also when Limits::findings is reached.
  Diagnostic* add(Kind kind, Severity severity, std::uint32_t pc, int limit,
                  std::uint32_t other_pc = ~std::uint32_t{0}, bool too_early = false);
  /// The findings. A read of bytes that a racing write had not reached yet is the race's doing: it
  /// is left out, so that the order that ran does not matter.
  std::vector<Diagnostic> take();

 private:
  std::vector<Diagnostic> findings_;
  struct Pcs {
    std::uint32_t own, other;
    bool too_early;
  };
  std::vector<Pcs> pcs_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
};

/// A finding at the instruction that runs. `lane` is the first of those concerned.
struct Finding {
  Kind kind;
  Severity severity = Severity::error;
  unsigned lane = 0;
  std::string message;  ///< behind "thread (1,0,0) of block (0,0,0) "
  std::optional<Range> range;
  std::optional<Place> other;
  std::uint32_t other_pc = ~std::uint32_t{0};
  bool too_early = false;  ///< may be only because a racing write came later: see Reporter::take
};
void report(Exec& x, Finding finding);
/// The place of an instruction and a thread, by linear block and thread numbers.
Place make_place(const Grid& grid, std::uint32_t pc, std::uint64_t block, std::uint32_t thread);
/// "(1,2,3)"
std::string to_string(Dim3 dim);
std::string hex(std::uint64_t value);
/// "thread (5,0,0) of block (0,0,0)"
std::string thread_name(const Place& place);

}  // namespace tilewright::emu::detail

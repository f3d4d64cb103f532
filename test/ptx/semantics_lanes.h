// SPDX-License-Identifier: Apache-2.0
// Runs one lane-pure instruction on register arrays that the tests fill.
#pragma once

#include "ptx/semantics/semantics.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tilewright::ptx::semantics {

inline std::vector<Isa> available_isas() {
  std::vector<Isa> isas{Isa::generic};
  if (best_isa() >= Isa::x86_64_v3) isas.push_back(Isa::x86_64_v3);
  if (best_isa() >= Isa::x86_64_v4) isas.push_back(Isa::x86_64_v4);
  return isas;
}

/// Registers and meaning of one opcode.
class Execution {
 public:
  explicit Execution(std::string_view opcode, Isa isa = best_isa())
      : meaning(resolve(opcode, isa)) {}

  /// Bits of source `i` in lane `lane`; a predicate's are 0 or 1.
  void set(std::size_t i, int lane, std::uint64_t bits) {
    write(sources_[i], meaning.src[i], lane, bits);
  }
  void set_result(int lane, std::uint64_t bits, std::size_t i = 0) {
    write(results_[i], meaning.dst[i], lane, bits);
  }
  void fill(std::size_t i, std::uint64_t bits) {
    for (int lane = 0; lane < 32; ++lane)
      set(i, lane, bits);
  }
  std::uint64_t result(int lane, std::size_t i = 0) const {
    const Register& from = results_[i];
    if (meaning.dst[i] == Lanes::pred) return from.narrow[0] >> lane & 1;
    const auto at = static_cast<std::size_t>(lane);
    return meaning.dst[i] == Lanes::b64 ? from.wide[at] : from.narrow[at];
  }
  void execute(std::uint32_t mask) { execute(arguments(mask)); }
  /// The result goes to the array of a source.
  void execute_onto_source(std::size_t i, std::uint32_t mask) {
    LaneArgs args = arguments(mask);
    args.dst[0] = address(sources_[i], meaning.src[i]);
    execute(args);
  }
  std::uint64_t source(std::size_t i, int lane) const {
    const auto at = static_cast<std::size_t>(lane);
    return meaning.src[i] == Lanes::b64 ? sources_[i].wide[at] : sources_[i].narrow[at];
  }

  Meaning meaning;
  std::uint32_t carry = 0;

 private:
  LaneArgs arguments(std::uint32_t mask) {
    LaneArgs args;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (meaning.dst[i] != Lanes::none) args.dst[i] = address(results_[i], meaning.dst[i]);
    }
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (meaning.src[i] != Lanes::none) args.src[i] = address(sources_[i], meaning.src[i]);
    }
    args.carry = &carry;
    args.mask = mask;
    return args;
  }
  void execute(const LaneArgs& args) { meaning.fn(args); }

  struct Register {
    alignas(128) std::array<std::uint32_t, 32> narrow{};
    alignas(128) std::array<std::uint64_t, 32> wide{};
  };
  static void* address(Register& r, Lanes lanes) {
    return lanes == Lanes::b64 ? static_cast<void*>(r.wide.data())
                               : static_cast<void*>(r.narrow.data());
  }
  static void write(Register& to, Lanes lanes, int lane, std::uint64_t bits) {
    const auto at = static_cast<std::size_t>(lane);
    if (lanes == Lanes::pred) {
      to.narrow[0] = (to.narrow[0] & ~(1u << lane)) | static_cast<std::uint32_t>(bits & 1) << lane;
    } else if (lanes == Lanes::b64) {
      to.wide[at] = bits;
    } else {
      to.narrow[at] = static_cast<std::uint32_t>(bits);
    }
  }

  std::array<Register, 2> results_;
  std::array<Register, 5> sources_;
};

}  // namespace tilewright::ptx::semantics

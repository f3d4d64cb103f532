// SPDX-License-Identifier: Apache-2.0
// The instructions that convert fp8 elements, two at a time (PTX ISA, cvt: sm_89 and later).
#include "lang/fp8.h"

#include <string>

namespace tilewright::lang {

void widen_fp8(Tracer& tracer, Type from, std::uint32_t word, std::span<const std::uint32_t> wide,
               SourceLoc at) {
  ptx::RegId pairs[] = {tracer.new_reg(b16), tracer.new_reg(b16)};
  tracer.emit("mov.b32", {ptx::vector({ptx::reg(pairs[0]), ptx::reg(pairs[1])}), ptx::reg(word)},
              at);
  std::string convert = "cvt.rn.f16x2." + std::string(name(from)) + "x2";
  for (std::size_t i = 0; i < wide.size(); i += 2) {
    ptx::RegId both = tracer.new_reg(b32);
    tracer.emit(convert, {ptx::reg(both), ptx::reg(pairs[i / 2])}, at);
    ptx::RegId low = tracer.new_reg(f16);
    ptx::RegId high = tracer.new_reg(f16);
    tracer.emit("mov.b32", {ptx::vector({ptx::reg(low), ptx::reg(high)}), ptx::reg(both)}, at);
    tracer.emit("cvt.f32.f16", {ptx::reg(wide[i]), ptx::reg(low)}, at);
    if (i + 1 < wide.size())
      tracer.emit("cvt.f32.f16", {ptx::reg(wide[i + 1]), ptx::reg(high)}, at);
  }
}

void narrow_fp8(Tracer& tracer, Type to, std::uint32_t word, std::span<const std::uint32_t> wide,
                SourceLoc at) {
  std::string convert = "cvt.rn.satfinite." + std::string(name(to)) + "x2.f32";
  auto element = [&](std::size_t i) {
    return i < wide.size() ? ptx::reg(wide[i]) : ptx::imm_f32(0.0f);
  };
  ptx::RegId pairs[] = {tracer.new_reg(b16), tracer.new_reg(b16)};
  for (std::size_t i = 0; i < 2; ++i) {
    if (2 * i < wide.size()) {
      tracer.emit(convert, {ptx::reg(pairs[i]), element(2 * i + 1), element(2 * i)}, at);
    } else {
      tracer.emit("mov.b16", {ptx::reg(pairs[i]), ptx::imm(0)}, at);
    }
  }
  tracer.emit("mov.b32", {ptx::reg(word), ptx::vector({ptx::reg(pairs[0]), ptx::reg(pairs[1])})},
              at);
}

}  // namespace tilewright::lang

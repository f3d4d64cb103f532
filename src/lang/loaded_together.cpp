// SPDX-License-Identifier: Apache-2.0
// A dependence of the loads that are used first on all others, which the assembler cannot undo.
#include "tilewright/loaded_together.h"

#include "lang/tracer.h"

#include <algorithm>
#include <vector>

namespace tilewright {
namespace {

using lang::Tracer;

constexpr std::size_t kBytesOfLoad = 16;  // an instruction reads no more

/// One register of each load.
struct Word {
  ptx::RegId reg;
  bool wide;  ///< of 64 bits
};
std::vector<Word> words_of_loads(std::span<const Fragment> fragments, SourceLoc at) {
  std::vector<Word> words;
  for (const Fragment& fragment : fragments) {
    const bool wide = bits(fragment.type()) == 64;
    const std::vector<std::uint32_t>& all = fragment.words(at);
    for (std::size_t i = 0; i < all.size(); i += kBytesOfLoad / (wide ? 8 : 4))
      words.push_back({all[i], wide});
  }
  return words;
}

/// 0, though no assembler can tell: a grid has at most 65535 blocks along z. From the constants of
/// the launch, so that nothing waits for it.
ptx::RegId hidden_zero(Tracer& tracer, SourceLoc at) {
  const ptx::RegId extent = tracer.new_reg(u32), zero = tracer.new_reg(u32);
  tracer.emit("mov.u32", {ptx::reg(extent), ptx::special("%nctaid.z")}, at);
  tracer.emit("shr.u32", {ptx::reg(zero), ptx::reg(extent), ptx::imm(16)}, at);
  return zero;
}

}  // namespace

void loaded_together(std::span<const Fragment> first, std::span<const Fragment> others,
                     SourceLoc at) {
  const std::vector<Word> used_first = words_of_loads(first, at);
  const std::vector<Word> used_later = words_of_loads(others, at);
  if (used_first.empty() || used_later.empty()) return;
  Tracer& tracer = Tracer::current("loaded_together", at);
  auto combined = [&](const char* op, ptx::RegId a, ptx::RegId b) {
    const ptx::RegId result = tracer.new_reg(b32);
    tracer.emit(op, {ptx::reg(result), ptx::reg(a), ptx::reg(b)}, at);
    return result;
  };
  auto narrow = [&](const Word& word) {
    if (!word.wide) return word.reg;
    const ptx::RegId low = tracer.new_reg(u32);
    tracer.emit("cvt.u32.u64", {ptx::reg(low), ptx::reg(word.reg)}, at);
    return low;
  };
  ptx::RegId all = narrow(used_later.front());
  for (std::size_t i = 1; i < used_later.size(); ++i)
    all = combined("or.b32", all, narrow(used_later[i]));
  all = combined("and.b32", all, hidden_zero(tracer, at));
  const ptx::RegId all_wide = tracer.new_reg(b64);
  if (std::any_of(used_first.begin(), used_first.end(), [](const Word& w) { return w.wide; }))
    tracer.emit("cvt.u64.u32", {ptx::reg(all_wide), ptx::reg(all)}, at);
  for (const Word& word : used_first) {
    tracer.emit(word.wide ? "or.b64" : "or.b32",
                {ptx::reg(word.reg), ptx::reg(word.reg), ptx::reg(word.wide ? all_wide : all)}, at);
  }
}

}  // namespace tilewright

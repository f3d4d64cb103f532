// SPDX-License-Identifier: Apache-2.0
// Eviction policies and prefetches.
#include "tilewright/cache_policy.h"

#include "lang/address.h"

namespace tilewright {

using lang::Tracer;

Value cache_policy(Eviction eviction, double fraction, SourceLoc at) {
  static constexpr const char* kPolicies[] = {"createpolicy.fractional.L2::evict_first.b64",
                                              "createpolicy.fractional.L2::evict_last.b64",
                                              "createpolicy.fractional.L2::evict_normal.b64",
                                              "createpolicy.fractional.L2::evict_unchanged.b64"};
  Tracer& tracer = Tracer::current("cache_policy", at);
  if (!(fraction > 0 && fraction <= 1)) {
    throw Error(ErrorKind::user,
                "cache_policy: the fraction is " + std::to_string(fraction) +
                    "; it must be above 0 and at most 1",
                at);
  }
  Value part = constant(f32, Arg(static_cast<float>(fraction), at));
  return tracer.pure(kPolicies[static_cast<int>(eviction)], b64, {&part}, at);
}

void prefetch(const Element& element, CacheLevel level, SourceLoc at) {
  Tracer& tracer = Tracer::current("prefetch", at);
  if (element.tensor().space() != MemorySpace::global) {
    throw Error(ErrorKind::user,
                std::string("prefetch: the element is in ") +
                    lang::space_word(element.tensor().space()) + " memory; it must be in global",
                at);
  }
  const char* op = level == CacheLevel::l1 ? "prefetch.global.L1" : "prefetch.global.L2";
  tracer.emit(op, {lang::address_operand(element, at)}, at);
}

}  // namespace tilewright

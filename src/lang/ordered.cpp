// SPDX-License-Identifier: Apache-2.0
// Strong loads and stores, and the fences between proxies.
#include "tilewright/ordered.h"

#include "lang/address.h"

#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

std::string access_op(const char* kind, const Element& cell, const char* order, Scope scope) {
  static constexpr const char* kScopes[] = {".cta", ".cluster", ".gpu", ".sys"};
  std::string op = std::string(kind) + order;
  op += kScopes[static_cast<int>(scope)];
  op += std::string(".") + lang::space_word(cell.tensor().space());
  return op + ".b" + std::to_string(bits(cell.tensor().type()));
}

Value strong_load(const Element& cell, const char* order, Scope scope, const char* what,
                  SourceLoc at) {
  Tracer& tracer = Tracer::current(what, at);
  Type type = cell.tensor().type();
  ptx::Operand address = lang::address_operand(cell, at);
  ptx::RegId reg = tracer.new_reg(type);
  tracer.emit(access_op("ld", cell, order, scope), {ptx::reg(reg), address}, at);
  return tracer.result(type, reg, Uniformity::thread);
}

void strong_store(const Element& cell, const Arg& value, const char* order, Scope scope,
                  const char* what) {
  SourceLoc at = value.at();
  Tracer& tracer = Tracer::current(what, at);
  ptx::RegId reg = tracer.reg_of(value.as(cell.tensor().type(), what), at);
  ptx::Operand address = lang::address_operand(cell, at);
  tracer.emit(access_op("st", cell, order, scope), {address, ptx::reg(reg)}, at);
}

}  // namespace

Value load_relaxed(const Element& cell, Scope scope, SourceLoc at) {
  return strong_load(cell, ".relaxed", scope, "load_relaxed", at);
}
Value load_acquire(const Element& cell, Scope scope, SourceLoc at) {
  return strong_load(cell, ".acquire", scope, "load_acquire", at);
}
void store_relaxed(const Element& cell, const Arg& value, Scope scope) {
  strong_store(cell, value, ".relaxed", scope, "store_relaxed");
}
void store_release(const Element& cell, const Arg& value, Scope scope) {
  strong_store(cell, value, ".release", scope, "store_release");
}

void fence_sc(Scope scope, SourceLoc at) {
  static constexpr const char* kFences[] = {"fence.sc.cta", "fence.sc.cluster", "fence.sc.gpu",
                                            "fence.sc.sys"};
  Tracer::current("fence_sc", at).emit(kFences[static_cast<int>(scope)], {}, at);
}

void fence_async_proxy(ProxySpace space, SourceLoc at) {
  static constexpr const char* kFences[] = {"fence.proxy.async", "fence.proxy.async.global",
                                            "fence.proxy.async.shared::cta",
                                            "fence.proxy.async.shared::cluster"};
  Tracer::current("fence_async_proxy", at).emit(kFences[static_cast<int>(space)], {}, at);
}

void fence_mbarrier_init(SourceLoc at) {
  Tracer::current("fence_mbarrier_init", at).emit("fence.mbarrier_init.release.cluster", {}, at);
}

}  // namespace tilewright

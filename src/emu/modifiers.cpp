// SPDX-License-Identifier: Apache-2.0
// Reads what an opcode's modifier words say about memory, order, scope and operation.
#include "emu/decode.h"

namespace tilewright::emu::detail {

namespace {

struct SpaceWord {
  std::string_view word;
  Space space;
};
constexpr SpaceWord kSpaces[] = {
    {"global", Space::global},      {"shared", Space::shared},
    {"shared::cta", Space::shared}, {"shared::cluster", Space::shared_cluster},
    {"local", Space::local},        {"param", Space::param},
    {"param::entry", Space::param}, {"param::func", Space::param},
    {"const", Space::const_},
};
struct OrderWord {
  std::string_view word;
  Order order;
};
constexpr OrderWord kOrders[] = {
    {"volatile", Order::volatile_}, {"relaxed", Order::relaxed}, {"acquire", Order::acquire},
    {"release", Order::release},    {"acq_rel", Order::acq_rel}, {"sc", Order::sc},
    {"weak", Order::weak},
};
struct ScopeWord {
  std::string_view word;
  Scope scope;
};
constexpr ScopeWord kScopes[] = {
    {"cta", Scope::cta}, {"cluster", Scope::cluster}, {"gpu", Scope::gpu},
    {"sys", Scope::sys}, {"gl", Scope::gpu},
};
struct AtomWord {
  std::string_view word;
  AtomOp op;
};
constexpr AtomWord kAtoms[] = {
    {"add", AtomOp::add},   {"inc", AtomOp::inc},  {"dec", AtomOp::dec}, {"min", AtomOp::min},
    {"max", AtomOp::max},   {"and", AtomOp::and_}, {"or", AtomOp::or_},  {"xor", AtomOp::xor_},
    {"exch", AtomOp::exch}, {"cas", AtomOp::cas},
};

}  // namespace

void read_modifiers(const ptx::Opcode& opcode, OpInfo& info) {
  info.opcode = &opcode;
  for (const ptx::Mod mod : opcode.slots) {
    if (mod.id == 0) continue;
    const std::string_view word = ptx::name(mod);
    info.word_bits |= bit_of_word(word);
    for (const auto& s : kSpaces) {
      if (s.word == word && info.space == Space::generic) info.space = s.space;
    }
    for (const auto& o : kOrders) {
      if (o.word == word) info.order = o.order;
    }
    for (const auto& s : kScopes) {
      if (s.word == word) info.scope = s.scope;
    }
    for (const auto& a : kAtoms) {
      if (a.word == word) info.atom = a.op;
    }
    if (word == "v2") info.vec = 2;
    if (word == "v4") info.vec = 4;
    if (word == "v8") info.vec = 8;
    const Type type = ptx::type_of(mod);
    if (type != Type::none) info.type = type;
  }
  if (info.type != Type::none && info.type != Type::pred && bits(info.type) >= 8) {
    info.bytes = bytes(info.type);
  }
  if (info.order == Order::volatile_) info.scope = Scope::sys;
  if (opcode.row().opcode == "bar" && !info.has<"warp">()) {
    info.word_bits |= bit_of_word("aligned");  // always so, whether said or not
  }
}

}  // namespace tilewright::emu::detail

// SPDX-License-Identifier: Apache-2.0
// The frame of a function: where registers, hidden registers, constants and defined masks lie.
#include "emu/decode.h"

#include <algorithm>

namespace tilewright::emu::detail {

namespace {
/// What the defined mask of a constant points to.
constexpr std::uint32_t kAllDefined = ~std::uint32_t{0};

std::uint32_t lines_of(Class cls) {
  switch (cls) {
    case Class::b64:
      return 2;
    case Class::b128:
      return 4;
    case Class::b32:
    case Class::none:
    case Class::pred:
    case Class::sink:
      return 1;
  }
  return 1;
}
}  // namespace

Class class_of(Type type) {
  if (type == Type::pred) return Class::pred;
  const int width = bits(type);
  return width == 128 ? Class::b128 : width == 64 ? Class::b64 : Class::b32;
}

SlotTable::SlotTable(Code& code, FunctionCode& function) : code_(code), function_(function) {
  for (const ptx::Register& r : function.source->registers) {
    registers_.push_back(make(class_of(r.type)));
  }
}

std::uint32_t SlotTable::line(std::uint32_t count) {
  const std::uint32_t at = bytes_;
  bytes_ += 128 * count;
  return at;
}

Slot SlotTable::make(Class cls) {
  Slot slot;
  slot.cls = cls;
  slot.in_frame = true;
  if (cls == Class::pred) {
    if (words_used_ == 32) {
      word_line_ = line(1);
      words_used_ = 0;
    }
    slot.value = word_line_ + 4 * words_used_++;
  } else {
    slot.value = line(lines_of(cls));
  }
  if (masks_used_ == 32) {
    mask_line_ = line(1);
    function_.defined_lines.push_back(mask_line_);
    masks_used_ = 0;
  }
  slot.defined = mask_line_ + 4 * masks_used_++;
  return slot;
}

Slot SlotTable::reg(ptx::RegId id) const { return registers_.at(id); }

Slot SlotTable::scratch(Class cls) { return make(cls); }

std::uint32_t SlotTable::carry() {
  if (carry_ == 0) carry_ = static_cast<std::uint32_t>(make(Class::pred).value);
  return carry_;
}

Slot SlotTable::hidden(Hidden kind, Class cls, std::uint32_t index, int component,
                       std::int64_t value) {
  for (const HiddenRegister& h : function_.hidden) {
    if (h.kind == kind && h.slot.cls == cls && h.index == index && h.component == component &&
        h.value == value) {
      return h.slot;
    }
  }
  const Slot slot = make(cls);
  function_.hidden.push_back({kind, index, component, value, slot});
  return slot;
}

Slot SlotTable::constant(Class cls, std::uint64_t value) {
  auto [it, fresh] = constants_.try_emplace({static_cast<int>(cls), value});
  if (!fresh) return it->second;
  auto& lanes = code_.constants.emplace_back();
  if (cls == Class::b64) {
    std::fill_n(lanes.bytes.begin(), 32, value);
  } else if (cls == Class::b32) {
    const std::uint64_t low = value & 0xffffffff;
    std::fill_n(lanes.bytes.begin(), 16, low << 32 | low);
  } else if (cls == Class::pred) {
    lanes.bytes[0] = value != 0 ? 0xffffffff : 0;
  }
  Slot& slot = it->second;
  slot.cls = cls;
  slot.value = reinterpret_cast<std::uint64_t>(lanes.bytes.data());
  slot.defined = reinterpret_cast<std::uint64_t>(&kAllDefined);
  return slot;
}

}  // namespace tilewright::emu::detail

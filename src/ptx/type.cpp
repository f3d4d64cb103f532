// SPDX-License-Identifier: Apache-2.0
// The types' names and widths.
#include "tilewright/type.h"

#include <array>

namespace tilewright {
namespace {

enum class Class : std::uint8_t { none, pred, bits, unsigned_, signed_, float_, packed };
struct Row {
  Type type;
  std::string_view name;
  int bits;
  Class kind;
};

// clang-format off
constexpr std::array kRows = {
    Row{Type::none, "none", 0, Class::none},       Row{Type::pred, "pred", 1, Class::pred},
    Row{Type::b8, "b8", 8, Class::bits},           Row{Type::b16, "b16", 16, Class::bits},
    Row{Type::b32, "b32", 32, Class::bits},        Row{Type::b64, "b64", 64, Class::bits},
    Row{Type::b128, "b128", 128, Class::bits},
    Row{Type::u8, "u8", 8, Class::unsigned_},      Row{Type::u16, "u16", 16, Class::unsigned_},
    Row{Type::u32, "u32", 32, Class::unsigned_},   Row{Type::u64, "u64", 64, Class::unsigned_},
    Row{Type::s8, "s8", 8, Class::signed_},        Row{Type::s16, "s16", 16, Class::signed_},
    Row{Type::s32, "s32", 32, Class::signed_},     Row{Type::s64, "s64", 64, Class::signed_},
    Row{Type::f16, "f16", 16, Class::float_},      Row{Type::bf16, "bf16", 16, Class::float_},
    Row{Type::tf32, "tf32", 32, Class::float_},    Row{Type::f32, "f32", 32, Class::float_},
    Row{Type::f64, "f64", 64, Class::float_},
    Row{Type::f16x2, "f16x2", 32, Class::packed},  Row{Type::bf16x2, "bf16x2", 32, Class::packed},
    Row{Type::f32x2, "f32x2", 64, Class::packed},  Row{Type::u16x2, "u16x2", 32, Class::packed},
    Row{Type::s16x2, "s16x2", 32, Class::packed},
    Row{Type::e4m3, "e4m3", 8, Class::float_},     Row{Type::e5m2, "e5m2", 8, Class::float_},
    Row{Type::e2m3, "e2m3", 6, Class::float_},     Row{Type::e3m2, "e3m2", 6, Class::float_},
    Row{Type::e2m1, "e2m1", 4, Class::float_},     Row{Type::ue8m0, "ue8m0", 8, Class::float_},
    Row{Type::ue4m3, "ue4m3", 8, Class::float_},
    Row{Type::e4m3x2, "e4m3x2", 16, Class::packed}, Row{Type::e5m2x2, "e5m2x2", 16, Class::packed},
    Row{Type::e2m3x2, "e2m3x2", 16, Class::packed}, Row{Type::e3m2x2, "e3m2x2", 16, Class::packed},
    Row{Type::e2m1x2, "e2m1x2", 8, Class::packed},  Row{Type::ue8m0x2, "ue8m0x2", 16, Class::packed},
    Row{Type::e4m3x4, "e4m3x4", 32, Class::packed}, Row{Type::e5m2x4, "e5m2x4", 32, Class::packed},
    Row{Type::u4, "u4", 4, Class::unsigned_},      Row{Type::s4, "s4", 4, Class::signed_},
};
// clang-format on

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].type) != i) return false;
  return true;
}
static_assert(in_order(), "kRows must list the types in the order of the enum");

const Row& row(Type type) { return kRows[static_cast<std::size_t>(type)]; }

}  // namespace

int bits(Type type) { return row(type).bits; }
int bytes(Type type) { return (row(type).bits + 7) / 8; }
std::string_view name(Type type) { return row(type).name; }

std::optional<Type> type_from_name(std::string_view name) {
  for (const Row& r : kRows)
    if (r.name == name && r.type != Type::none) return r.type;
  return std::nullopt;
}

bool is_float(Type type) { return row(type).kind == Class::float_; }
bool is_integer(Type type) {
  return row(type).kind == Class::unsigned_ || row(type).kind == Class::signed_;
}
bool is_signed(Type type) { return row(type).kind == Class::signed_ || is_float(type); }
bool is_bits(Type type) { return row(type).kind == Class::bits; }
bool is_packed(Type type) { return row(type).kind == Class::packed; }

}  // namespace tilewright

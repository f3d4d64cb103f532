// SPDX-License-Identifier: Apache-2.0
// The table of safetensors' element types.
#include "io/safetensors_types.h"

#include <array>

namespace tilewright::io {
namespace {

struct Row {
  std::string_view name;
  Type type;
};
// clang-format off
constexpr std::array kRows = {
    Row{"F64", Type::f64}, Row{"F32", Type::f32}, Row{"F16", Type::f16}, Row{"BF16", Type::bf16},
    Row{"I64", Type::s64}, Row{"I32", Type::s32}, Row{"I16", Type::s16}, Row{"I8", Type::s8},
    Row{"U64", Type::u64}, Row{"U32", Type::u32}, Row{"U16", Type::u16}, Row{"U8", Type::u8},
    Row{"BOOL", Type::b8}, Row{"F8_E4M3", Type::e4m3}, Row{"F8_E5M2", Type::e5m2},
    Row{"F8_E8M0", Type::ue8m0}, Row{"F4", Type::e2m1},
};
// clang-format on

}  // namespace

std::optional<Type> type_from_safetensors(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::optional<std::string_view> safetensors_name(Type type) {
  for (const Row& row : kRows) {
    if (row.type == type) return row.name;
  }
  return std::nullopt;
}

std::string safetensors_type_names() {
  std::string text;
  for (const Row& row : kRows)
    text += (text.empty() ? "" : ", ") + std::string(row.name);
  return text;
}

}  // namespace tilewright::io

// SPDX-License-Identifier: Apache-2.0
// What rows by index have to be, whichever way they go: types, and checks.
#pragma once

#include "kernels/rows/rows.h"

#include <array>

namespace tilewright {

/// Types whose bits are copied.
inline constexpr std::array kCopied{bf16, f16, f32, f64, b8,  u8,   s8,  u16,
                                    s16,  u32, s32, u64, s64, e4m3, e5m2};
inline constexpr std::array kIndices{s32, s64};

/// A matrix of rows under the name that its operator gives it.
struct NamedRows {
  View view;
  std::string_view name;
};

/// Refuses ids of another type than s32 and s64, and elements that are no whole bytes.
void check_row_types(const View& ids, const View& from, const rows::Caller& caller);
/// Refuses rows of different lengths or of none, strides inside of rows, and overlap, also of `to`
/// with ids.
void check_row_pair(const View& ids, const NamedRows& from, const NamedRows& to,
                    const rows::Caller& caller);
/// Refuses src and dst of different types; `what` does not convert.
void check_same_type(const View& src, const View& dst, std::string_view what,
                     const rows::Caller& caller);

}  // namespace tilewright

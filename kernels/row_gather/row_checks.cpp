// SPDX-License-Identifier: Apache-2.0
// Checks of rows by index, and their types as bits.
#include "kernels/row_gather/row_checks.h"

#include <array>
#include <string>

namespace tilewright {
namespace {

void check_contiguous(const NamedRows& rows, const rows::Caller& caller) {
  if (rows.view.shape[1] <= 1 || rows.view.stride[1] == 1) return;
  caller.refuse(std::string(rows.name) + " is " + to_string(rows.view) + " and has " +
                std::to_string(rows.view.stride[1]) + " as its last stride; it must be 1");
}

}  // namespace

void check_row_types(const View& ids, const View& from, const rows::Caller& caller) {
  if (!rows::is_index_type(ids.type)) {
    caller.refuse("ids has type " + std::string(name(ids.type)) + "; it must be s32 or s64");
  }
  const int width = bits(from.type);
  if (width == 8 || width == 16 || width == 32 || width == 64) return;
  caller.refuse("rows of type " + std::string(name(from.type)) + " have elements of " +
                std::to_string(width) + " bits; they must have 8, 16, 32 or 64");
}

void check_row_pair(const View& ids, const NamedRows& from, const NamedRows& to,
                    const rows::Caller& caller) {
  if (from.view.rank != 2 || to.view.rank != 2 || from.view.shape[1] != to.view.shape[1]) {
    caller.refuse(std::string(from.name) + " is " + to_string(from.view) + " and " +
                  std::string(to.name) + " " + to_string(to.view) +
                  "; both must have rows of the same length");
  }
  if (from.view.shape[1] == 0) caller.refuse("rows have 0 elements; they must have some");
  for (const NamedRows& rows : std::array{from, to}) {
    check_contiguous(rows, caller);
    rows::check_distinct(rows.view, rows.name, caller);
  }
  rows::check_apart(from.view, from.name, to.view, to.name, caller);
  rows::check_apart(ids, "ids", to.view, to.name, caller);
}

void check_same_type(const View& src, const View& dst, std::string_view what,
                     const rows::Caller& caller) {
  if (src.type == dst.type) return;
  caller.refuse("src has type " + std::string(name(src.type)) + " and dst " +
                std::string(name(dst.type)) + "; " + std::string(what) + " does not convert");
}

}  // namespace tilewright

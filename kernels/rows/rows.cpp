// SPDX-License-Identifier: Apache-2.0
// Checks and access widths of operators on rows.
#include "kernels/rows/rows.h"

#include "tilewright/dependent_launches.h"
#include "tilewright/module.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

namespace tilewright::rows {

void Caller::refuse(const std::string& what) const {
  const std::string part = scope.empty() ? "" : " (" + std::string(scope) + ")";
  throw Error(ErrorKind::user, std::string(op) + ": " + what + part, at);
}

bool is_real_type(Type type) { return type == bf16 || type == f16 || type == f32; }
bool is_index_type(Type type) { return type == s32 || type == s64; }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

View folded(const View& view, std::string_view which, const Caller& caller) {
  std::string what(which);
  if (view.rank < 1) caller.refuse(what + " has rank 0; it must have the modes [..., H]");
  auto last = static_cast<std::size_t>(view.rank - 1);
  if (view.shape[last] > 1 && view.stride[last] != 1) {
    caller.refuse(what + " " + to_string(view) + " has " + std::to_string(view.stride[last]) +
                  " as its last stride; it must be 1");
  }
  View rows = view;
  rows.rank = 2;
  rows.shape = {1, view.shape[last]};
  rows.stride = {view.shape[last], 1};
  bool first = true;
  for (std::size_t i = last; i-- > 0;) {
    if (view.shape[i] != 1) {
      bool nests = first || view.stride[i] == rows.stride[0] * rows.shape[0];
      if (!nests && size(view) != 0) {
        caller.refuse(
            what + " " + to_string(view) +
            " has outer modes that do not fold into rows one stride apart; pass a rank-2 view");
      }
      if (first) rows.stride[0] = view.stride[i];
      first = false;
    }
    rows.shape[0] *= view.shape[i];
  }
  return rows;
}

namespace {

/// The outer modes that are not 1 and do not continue the one before, by extent and stride.
std::vector<std::pair<std::int64_t, std::int64_t>> outer_modes(const View& view) {
  std::vector<std::pair<std::int64_t, std::int64_t>> modes;
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(view.rank); ++i) {
    if (view.shape[i] == 1) continue;
    const bool continues = !modes.empty() && modes.back().second == view.stride[i] * view.shape[i];
    if (!continues) modes.emplace_back(1, 0);
    modes.back() = {modes.back().first * view.shape[i], view.stride[i]};
  }
  return modes;
}

}  // namespace

View folded_in_two(const View& view, std::string_view which, const Caller& caller) {
  const auto modes = outer_modes(view);
  if (modes.size() != 2 || size(view) == 0) return folded(view, which, caller);
  const auto last = static_cast<std::size_t>(view.rank - 1);
  View rows = view;
  rows.rank = 2;
  rows.shape = {1, view.shape[last]};
  rows.stride = {view.shape[last], view.stride[last]};
  rows = folded(rows, which, caller);
  rows.rank = 3;
  rows.shape = {modes[0].first, modes[1].first, view.shape[last]};
  rows.stride = {modes[0].second, modes[1].second, 1};
  return rows;
}

std::int64_t row_count(const View& rows) {
  return rows.rank == 3 ? rows.shape[0] * rows.shape[1] : rows.shape[0];
}
std::int64_t row_elems(const View& rows) {
  return rows.shape[static_cast<std::size_t>(rows.rank - 1)];
}

View as_bits(const View& view) {
  View same = view;
  const int width = bits(view.type);
  same.type = width == 8 ? b8 : width == 16 ? b16 : width == 32 ? b32 : b64;
  return same;
}

void check_vector(const View& view, std::string_view which, std::int64_t elems,
                  const Caller& caller) {
  bool contiguous = view.rank == 1 && view.shape[0] == elems && (elems <= 1 || view.stride[0] == 1);
  if (contiguous) return;
  caller.refuse(std::string(which) + " is " + to_string(view) + "; it must have " +
                std::to_string(elems) + " contiguous elements");
}

void check_type(const View& view, std::string_view which, Type type, const Caller& caller) {
  if (view.type == type) return;
  caller.refuse(std::string(which) + " has type " + std::string(name(view.type)) + "; it must be " +
                std::string(name(type)));
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const float single = static_cast<float>(value);
  const bool is_single = static_cast<double>(single) == value;  // its digits are fewer
  const std::to_chars_result end =
      is_single ? std::to_chars(text.data(), text.data() + text.size(), single)
                : std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

void check_real(const View& view, std::string_view which, const Caller& caller) {
  if (is_real_type(view.type)) return;
  caller.refuse(std::string(which) + " has type " + std::string(name(view.type)) +
                "; it must be bf16, f16 or f32");
}

void check_like_or_f32(const View& view, std::string_view which, Type like, std::string_view owner,
                       const Caller& caller) {
  if (view.type == like || view.type == f32) return;
  const std::string allowed = std::string(owner) + "'s type " + std::string(name(like));
  caller.refuse(std::string(which) + " has type " + std::string(name(view.type)) + "; it must be " +
                allowed + (like == f32 ? "" : " or f32"));
}

void check_norm_numbers(float eps, float weight_bias, const Caller& caller) {
  if (!std::isfinite(eps) || eps < 0)
    caller.refuse("eps=" + number_text(eps) + "; it must be finite and at least 0");
  if (!std::isfinite(weight_bias))
    caller.refuse("weight_bias=" + number_text(weight_bias) + "; it must be finite");
}

void check_distinct(const View& view, std::string_view which, const Caller& caller) {
  if (!overlaps_itself(view)) return;
  caller.refuse(std::string(which) + " is " + to_string(view) +
                ", whose elements overlap; they must be apart");
}

void check_apart(const View& a, std::string_view a_name, const View& b, std::string_view b_name,
                 const Caller& caller) {
  if (!overlap(a, b)) return;
  caller.refuse(std::string(a_name) + " and " + std::string(b_name) +
                " overlap; they must be apart");
}

namespace {

bool divides_offsets(std::int64_t elems, const View& view) {
  std::int64_t access_bytes = std::min<std::int64_t>(16, elems * bytes(view.type));
  if (view.address % static_cast<std::uint64_t>(access_bytes) != 0) return false;
  if (view.rank == 0) return true;
  for (int i = 0; i + 1 < view.rank; ++i) {
    auto mode = static_cast<std::size_t>(i);
    if (view.shape[mode] > 1 && view.stride[mode] % elems != 0) return false;
  }
  return view.shape[static_cast<std::size_t>(view.rank - 1)] % elems == 0;
}

}  // namespace

int common_vector(Type lead, std::span<const View> views) {
  int elems = 16 * 8 / bits(lead);
  auto fits = [&](const View& view) { return divides_offsets(elems, view); };
  while (elems > 1 && !std::all_of(views.begin(), views.end(), fits))
    elems /= 2;
  return elems;
}

namespace {

/// Half an ulp of 1, and half the smallest subnormal number.
struct Halves {
  double ulp, tiniest;
};
Halves halves_of(Type type) {
  if (type == bf16) return {0x1p-8, 0x1p-134};
  if (type == f16) return {0x1p-11, 0x1p-25};
  if (type == e4m3) return {0x1p-4, 0x1p-10};
  if (type == e5m2) return {0x1p-3, 0x1p-17};
  if (type == e2m1) return {0x1p-2, 0x1p-2};
  return {0x1p-24, 0x1p-150};
}

}  // namespace

double half_ulp(Type type) { return halves_of(type).ulp; }
double half_tiniest(Type type) { return halves_of(type).tiniest; }

bool is_dependent(const Device& device, const LaunchConfig& launch) {
  constexpr int kHopper = 90;
  return DependentLaunches::wanted() && !launch.cooperative && device.target().sm >= kHopper;
}

void wait_for_predecessor(Traced& traced) {
  for (ptx::Function& function : traced.module().functions) {
    if (function.name != traced.entry) continue;
    const std::array<ptx::Stmt, 2> first{
        ptx::Instr{.op = ptx::opcode("griddepcontrol.wait"), .guard = {}, .operands = {}},
        ptx::Instr{
            .op = ptx::opcode("griddepcontrol.launch_dependents"), .guard = {}, .operands = {}}};
    function.body.insert(function.body.begin(), first.begin(), first.end());
  }
}

}  // namespace tilewright::rows

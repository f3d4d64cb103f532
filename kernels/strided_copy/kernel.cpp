// SPDX-License-Identifier: Apache-2.0
// The device side of strided_copy.
#include "kernels/rows/grid_division.h"
#include "kernels/strided_copy/strided_copy.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/thread.h"

#include <optional>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

/// Elements one after another along the innermost mode.
struct Item {
  Tensor src, dst;  ///< (elems)
  Value exists;     ///< its first element does
  Value left;       ///< elements that its row has from there on, or at least has: s64
  Value whole;      ///< all of them exist
  Value part;       ///< some do
};

class StridedCopyKernel {
 public:
  /// Divisors are those of the modes from the second on, of plans that are not wide.
  StridedCopyKernel(const StridedCopyPlan& plan, std::vector<Value> divisors)
      : plan_(plan), c_(plan.config), divisors_(std::move(divisors)) {}

  void operator()(const Tensor& src, const Tensor& dst, const Value& count) const {
    std::vector<Item> items;
    std::vector<Fragment> loaded;
    const Value first =
        number_type(block_idx().x) * (c_.threads * c_.items) + number_type(linear_thread_idx());
    for (int j = 0; j < c_.items; ++j) {
      const Value number = first + j * c_.threads;
      items.push_back(item_at(src, dst, number, number < count));
      loaded.push_back(loaded_item(items.back()));
    }
    for (std::size_t j = 0; j < items.size(); ++j)
      store_item(items[j], converted(loaded[j]));
  }

 private:
  Value number_type(const Value& number) const { return c_.wide ? number.to(s64) : number; }

  /// The quotient by a mode's extent, and the coordinate in that mode that is left.
  std::pair<Value, Value> divided(const Value& number, int mode) const {
    if (!c_.wide) {
      const rows::Divided parts =
          rows::divided(number, divisors_[static_cast<std::size_t>(mode - 1)]);
      return {parts.quotient, parts.remainder};
    }
    const std::int64_t extent = plan_.extent(mode);
    const Value quotient = number / extent;
    return {quotient, number - quotient * extent};
  }

  /// In each mode; of the innermost, which item.
  std::vector<Value> coordinates(const Value& number, int mode) const {
    if (mode == 0) return {number.to(s64)};
    const auto [quotient, remainder] = divided(number, mode);
    std::vector<Value> all = coordinates(quotient, mode - 1);
    all.push_back(remainder.to(s64));
    return all;
  }

  Item item_at(const Tensor& src, const Tensor& dst, const Value& number,
               const Value& exists) const {
    const int last = plan_.dst.rank - 1;
    const std::vector<Value> at = coordinates(number, last);
    const Value begin = at.back() * c_.elems;
    std::vector<IntTuple> coord;
    coord.reserve(at.size());
    for (int mode = 0; mode < last; ++mode)
      coord.emplace_back(to_int(at[static_cast<std::size_t>(mode)]));
    coord.emplace_back(to_int(begin));
    const Coord where = IntTuple::tuple(std::move(coord));
    const Tensor from = piece(src, where), to = piece(dst, where);
    if (!c_.ends) return {from, to, exists, constant(s64, c_.elems), exists, constant(pred, false)};
    const Value left = to_value(dst.shape()[last].value()).to(s64) - begin;
    return {from, to, exists, left, exists && left >= c_.elems, exists && left < c_.elems};
  }

  /// Not by element(): an item behind the last one may be known to lie outside.
  Tensor piece(const Tensor& tensor, const Coord& where) const {
    const IntTuple stride = tensor.layout().stride()[plan_.dst.rank - 1];
    return tensor.at_offset(tensor.layout()(where),
                            Layout(Shape{c_.elems}, IntTuple::tuple({stride})));
  }

  Value has(const Item& item, int elem) const {
    return c_.ends && elem > 0 ? item.exists && item.left > elem : item.exists;
  }

  static bool steps_by(const Tensor& piece, std::int64_t stride) {
    return piece.layout().stride()[0].value().is_static(stride);
  }

  Fragment loaded_item(const Item& item) const {
    const Tensor& src = item.src;
    if (steps_by(src, 1)) {
      Fragment row = load_if(item.whole, src(0), c_.elems);
      if (c_.ends) {
        if_(item.part, [&] {
          for (int e = 0; e + 1 < c_.elems; ++e)
            row[e] = load_if(item.left > e, src(e), 1)[0].get();
        });
      }
      return row;
    }
    Fragment row(src.type(), c_.elems);
    if (steps_by(src, 0)) {
      row.fill(load_if(item.exists, src(0), 1)[0].get());
      return row;
    }
    for (int e = 0; e < c_.elems; ++e)
      row[e] = load_if(has(item, e), src(e), 1)[0].get();
    return row;
  }

  /// By way of f32, which holds every number of the other types.
  Fragment converted(const Fragment& row) const {
    return plan_.src.type == plan_.dst.type ? row : row.to(f32).to(plan_.dst.type);
  }

  void store_item(const Item& item, const Fragment& row) const {
    const Tensor& dst = item.dst;
    const auto store_one = [&](const Value& inside, int e) {
      Fragment one(row.type(), 1);
      one[0] = row[e].get();
      store_if(inside, dst(e), one);
    };
    if (!steps_by(dst, 1)) {
      for (int e = 0; e < c_.elems; ++e)
        store_one(has(item, e), e);
      return;
    }
    store_if(item.whole, dst(0), row);
    if (!c_.ends) return;
    if_(item.part, [&] {
      for (int e = 0; e + 1 < c_.elems; ++e)
        store_one(item.left > e, e);
    });
  }

  const StridedCopyPlan& plan_;
  const StridedCopyConfig& c_;
  std::vector<Value> divisors_;
};

}  // namespace

Traced StridedCopyPlan::trace(ptx::Target target) const {
  const std::string types = src.type == dst.type
                                ? std::string(name(src.type))
                                : std::string(name(src.type)) + "_" + std::string(name(dst.type));
  TraceOptions options{
      .name = "strided_copy_" + types, .target = target, .block = {config.threads, 1, 1}};
  using Maybe = std::optional<Value>;
  auto body = [this](const Tensor& from, const Tensor& to, const Value& count, const Maybe& second,
                     const Maybe& third, const Maybe& fourth, const Maybe& fifth) {
    std::vector<Value> divisors;
    for (const Maybe* each : {&second, &third, &fourth, &fifth})
      if (*each) divisors.push_back(**each);
    StridedCopyKernel(*this, std::move(divisors))(from, to, count);
  };
  auto divisor = [this](int mode) {
    const bool divides = !config.wide && mode < dst.rank;
    return divides ? std::optional(rows::divisor_arg()) : std::nullopt;
  };
  const ScalarArg count{config.wide ? s64 : s32, {}};
  return tilewright::trace(options, body, src_arg, dst_arg, count, divisor(1), divisor(2),
                           divisor(3), divisor(4));
}

}  // namespace tilewright

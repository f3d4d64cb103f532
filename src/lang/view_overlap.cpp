// SPDX-License-Identifier: Apache-2.0
// Whether strided views share memory: parts of packed rows take turns in one range without that.
#include "tilewright/view.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace tilewright {
namespace {

constexpr std::int64_t kMostReach = std::numeric_limits<std::int64_t>::max() / 8;  // bytes

/// A coefficient from `low` to `high` times `step`, in bytes.
struct Term {
  std::int64_t step, low, high;
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && a < 0 ? 1 : 0);
}

/// Places of elements as a sum of terms. Steps are merged and descend.
class Places {
 public:
  /// Adds the view's places, or takes them away. False where they are not of whole bytes.
  bool add(const View& view, int sign) {
    const int width = storage_bits(view.type);
    for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
      std::int64_t last = view.shape[i] - 1, step = view.stride[i];
      if (last == 0 || step == 0) continue;
      if (width >= 8) {
        step *= width / 8;
      } else if (step == 1) {
        last /= 2;  // pairs of four bits
      } else if (step % 2 == 0) {
        step /= 2;
      } else {
        return false;
      }
      if (step < 0) {
        step = -step;
        last = -last;
      }
      add(step, last * sign);
    }
    return true;
  }

  /// Whether the sum can lie in [low, high]. Gives up, and says so, where that takes long.
  bool reach(std::int64_t low, std::int64_t high) {
    sort();
    return reach_from(0, low, high);
  }

  /// The same without all coefficients 0. Coefficients' ranges are symmetric.
  bool reach_elsewhere(std::int64_t low, std::int64_t high) {
    sort();
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      Term& term = terms_[i];
      const std::int64_t least = term.low;
      term.low = 1;
      if (reach_from(i, low, high)) return true;
      term.low = least;
    }
    return false;
  }

 private:
  void add(std::int64_t step, std::int64_t last) {
    auto term = std::find_if(terms_.begin(), terms_.end(),
                             [step](const Term& each) { return each.step == step; });
    if (term == terms_.end()) term = terms_.insert(terms_.end(), {step, 0, 0});
    (last < 0 ? term->low : term->high) += last;
  }

  void sort() {
    std::sort(terms_.begin(), terms_.end(),
              [](const Term& a, const Term& b) { return a.step > b.step; });
  }

  bool reach_from(std::size_t first, std::int64_t low, std::int64_t high) {
    if (first == terms_.size()) return low <= 0 && high >= 0;
    std::int64_t rest_low = 0, rest_high = 0;
    for (std::size_t i = first + 1; i < terms_.size(); ++i) {
      rest_low += terms_[i].low * terms_[i].step;
      rest_high += terms_[i].high * terms_[i].step;
    }
    const Term& term = terms_[first];
    const std::int64_t from = std::max(term.low, -floor_div(rest_high - low, term.step));
    const std::int64_t to = std::min(term.high, floor_div(high - rest_low, term.step));
    for (std::int64_t c = from; c <= to; ++c) {
      if (--turns_ < 0 || reach_from(first + 1, low - c * term.step, high - c * term.step))
        return true;
    }
    return false;
  }

  std::vector<Term> terms_;
  int turns_ = 4096;
};

std::int64_t element_bytes(const View& view) { return std::max(1, storage_bits(view.type) / 8); }

std::int64_t extent(const ByteRange& range) {
  return static_cast<std::int64_t>(range.end - range.begin);
}

/// Whether each mode steps over all of the modes behind it.
bool modes_nest(const View& view) {
  std::int64_t behind = 1;
  for (std::size_t i = static_cast<std::size_t>(view.rank); i-- > 0;) {
    if (view.shape[i] == 1) continue;
    if (view.stride[i] < behind) return false;
    behind += (view.shape[i] - 1) * view.stride[i];
  }
  return true;
}

}  // namespace

bool overlap(const View& a, const View& b) {
  const ByteRange p = byte_range(a);
  const ByteRange q = byte_range(b);
  if (p.begin == p.end || q.begin == q.end || p.begin >= q.end || q.begin >= p.end) return false;
  if (is_row_major(a) && is_row_major(b)) return true;
  if (std::max(extent(p), extent(q)) > kMostReach) return true;
  Places difference;
  if (!difference.add(b, 1) || !difference.add(a, -1)) return true;
  const auto apart = static_cast<std::int64_t>(b.address - a.address);
  return difference.reach(1 - element_bytes(b) - apart, element_bytes(a) - 1 - apart);
}

bool overlaps_itself(const View& view) {
  if (size(view) <= 1 || modes_nest(view)) return false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i)
    if (view.stride[i] == 0 && view.shape[i] > 1) return true;
  if (extent(byte_range(view)) > kMostReach) return true;
  Places difference;
  if (!difference.add(view, 1) || !difference.add(view, -1)) return true;
  return difference.reach_elsewhere(1 - element_bytes(view), element_bytes(view) - 1);
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Reading and writing a tile: which words are whole, and where an element lies.
#include "kernels/transpose/shared_tile.h"

#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

constexpr int kAccessBytes = TransposeConfig::kAccessBytes;
constexpr int kSectorBytes = TransposeConfig::kSectorBytes;

/// Threads whose accesses to dst are neighbours, or begin in other rows, shall meet different
/// banks: rows are a word longer, and as many as an access has elements are followed by one word.
Layout rows_in_groups(const TransposeConfig& c, int per_word) {
  const int group = c.access_elems(), row = c.row_words() * per_word;
  return Layout(Shape{{group, c.smem_rows() / group}, c.across * per_word},
                Stride{{row, group * row + per_word}, 1});
}

/// `count` tensors `step` elements apart, an addition each.
std::vector<Tensor> steps(const Tensor& first, const Int& step, int count) {
  std::vector<Tensor> all{first};
  while (static_cast<int>(all.size()) < count)
    all.push_back(all.back().at_offset(step, first.layout()));
  return all;
}

Value clipped(const Value& count, int most) { return min(count, most).to(s32); }

}  // namespace

SharedTile::SharedTile(const TransposeConfig& config, const Tensor& src, const Tensor& dst,
                       TransposeCorner corner)
    : c_(config),
      src_(src),
      dst_(dst),
      words_(dynamic_shared(config.word_bytes() == 8 ? b64 : b32, rows_in_groups(config, 1))),
      elements_(dynamic_shared(src.type(), rows_in_groups(config, config.word_elems()))),
      corner_(std::move(corner)),
      first_row_(corner_.m - config.rows_before()),
      phase_(src(corner_.batch, first_row_, corner_.n).address().to(u32)),
      pitch_(to_value(src.layout().stride()[1].value()).to(u32) * config.elem_bytes),
      begin_(clipped(max(-first_row_, 0), config.smem_rows())),
      end_(clipped(to_value(src.shape()[1].value()).to(s64) - first_row_, config.smem_rows())),
      left_(clipped(to_value(src.shape()[2].value()).to(s64) - corner_.n,
                    config.tile_n() + config.word_elems())) {}

void SharedTile::transpose() const {
  read();
  if (!c_.whole_words) read_edges();
  barrier();
  write();
}

/// Elements between the word boundary and the tile's first column.
Value SharedTile::skipped(const Value& row) const {
  if (c_.whole_words) return constant(s32, 0);
  const Value past = (phase_ + row.to(u32) * pitch_) & (c_.word_bytes() - 1);
  return (past / c_.elem_bytes).to(s32);
}

Value SharedTile::is_row(const Value& row) const { return row >= begin_ && row < end_; }

/// All loads are on their way before the first store. Words that are not whole become zeros.
void SharedTile::read() const {
  const int elems = c_.word_elems(), at_once = c_.threads / c_.across;
  const Value word = linear_thread_idx() % c_.across;
  const Value down = linear_thread_idx() / c_.across;
  const Value skip = skipped(down);  // the same in all rows of the thread
  const Value first = word * elems - skip;
  const Value whole = (first >= 0 || corner_.n > 0) && first + elems <= left_;
  const Value base = src_(corner_.batch, first_row_ + down.to(s64), corner_.n).address() -
                     (skip * c_.elem_bytes).to(u64) + (word * c_.word_bytes()).to(u64);
  const Tensor start(words_.type(), MemorySpace::global, base.assume({c_.word_bytes()}),
                     Layout(Shape{1}), c_.word_bytes());
  const Int step = src_.layout().stride()[1].value() * (at_once / elems);
  const std::vector<Tensor> accesses = steps(start, step, c_.smem_rows() / at_once);
  std::vector<Fragment> loaded;
  for (int i = 0; i < c_.smem_rows(); i += at_once) {
    const Value row = down + i;
    const Value exists = i < c_.rows_before() ? is_row(row) : row < end_;
    const Tensor& access = accesses[static_cast<std::size_t>(i / at_once)];
    loaded.push_back(load_if(whole && exists, access(0), 1));
  }
  // Rows of the thread are a power of two apart, and so are groups: places add up.
  const Tensor place = words_.at_offset(words_(down, word).offset(), words_.layout());
  for (int i = 0; i < c_.smem_rows(); i += at_once)
    store(place(i, 0), loaded[static_cast<std::size_t>(i / at_once)]);
}

/// The words in which rows of src begin and end.
void SharedTile::read_edges() const {
  if_(corner_.n == 0 || left_ < c_.tile_n() + c_.word_elems(), [&] {
    barrier();
    for_(linear_thread_idx(), end_, c_.threads, [&](const Value& row) {
      const Value skip = skipped(row);
      read_word_by_elements(row, constant(s32, 0), skip);
      read_word_by_elements(row, (left_ + skip) / c_.word_elems(), skip);
    });
  });
}

void SharedTile::read_word_by_elements(const Value& row, const Value& word,
                                       const Value& skip) const {
  for (int e = 0; e < c_.word_elems(); ++e) {
    const Value place = word * c_.word_elems() + e;
    const Value column = place - skip;
    const Value inside = row >= begin_ && word < c_.across && column >= 0 && column < left_;
    const Element from = src_(corner_.batch, first_row_ + row.to(s64), corner_.n + column.to(s64));
    store_if(inside, elements_(row, place), load_if(inside, from, 1));
  }
}

/// Rows of dst begin alike in their sectors every `turn` columns. A thread writes those together:
/// their elements lie side by side in shared memory.
void SharedTile::write() const {
  const int at_once = c_.threads / c_.down;
  const int turn = c_.whole_accesses ? at_once : std::max(at_once, kSectorBytes / c_.elem_bytes);
  const Value first = linear_thread_idx() / c_.down;
  if (turn == at_once) {
    write_columns(first, turn);
  } else {
    for_(first, first + turn, at_once, [&](const Value& column) { write_columns(column, turn); });
  }
}

void SharedTile::write_columns(const Value& first, int turn) const {
  const int elems = c_.access_elems();
  const Value access = linear_thread_idx() % c_.down;
  const Value address = dst_(corner_.batch, corner_.n + first.to(s64), corner_.m).address();
  const Value before = c_.whole_accesses
                           ? constant(s32, 0)
                           : ((address.to(u32) & (kSectorBytes - 1)) / c_.elem_bytes).to(s32);
  const Value top = (c_.rows_before() - before).assume({1, 0, c_.rows_before()});
  const Value row = top + access * elems;
  const Value begin = address - (before * c_.elem_bytes).to(u64) + (access * kAccessBytes).to(u64);
  const Tensor start(dst_.type(), MemorySpace::global, begin.assume({kAccessBytes}),
                     Layout(Shape{elems}), kAccessBytes);
  const std::vector<Tensor> accesses =
      steps(start, dst_.layout().stride()[1].value() * turn, (c_.tile_n() + turn - 1) / turn);
  const std::vector<Tensor> elements = elements_of(top, access, first);
  const Value columns = min(left_, c_.tile_n());
  const Value whole =
      c_.whole_accesses ? row < end_ : row >= begin_ && row + c_.access_elems() <= end_;
  for (int column = 0; column < c_.tile_n(); column += turn) {
    const Value inside = whole && first + column < columns;
    if_(inside, [&] {
      Fragment access_elements(dst_.type(), elems);
      for (int e = 0; e < elems; ++e)
        access_elements[e] = load(elements[static_cast<std::size_t>(e)](column), 1)[0].get();
      store(accesses[static_cast<std::size_t>(column / turn)](0), access_elements);
    });
  }
  if (c_.whole_accesses) return;
  if_(!whole, [&] {
    for_(0, columns - first, turn, [&](const Value& column) {
      const Int further = dst_.layout().stride()[1].value() * to_int(column.to(s64));
      const Tensor to = start.at_offset(further, start.layout());
      for (int e = 0; e < elems; ++e) {
        const Tensor& from = elements[static_cast<std::size_t>(e)];
        store_if(is_row(row + e), to(e), load(from(column), 1));
      }
    });
  });
}

/// Where the elements of an access to dst lie for column `first`. `top` is the row of those that
/// the first access begins with.
std::vector<Tensor> SharedTile::elements_of(const Value& top, const Value& access,
                                            const Value& first) const {
  const int elems = c_.access_elems(), per_word = c_.word_elems();
  const int row_elems = c_.row_words() * per_word;
  const Value place = top * row_elems + access * (elems * row_elems + per_word) + first;
  std::vector<Value> skips;  // of the access's rows, which repeat
  for (int e = 0; e < per_word; ++e)
    skips.push_back(skipped(top + e));
  std::vector<Tensor> elements;
  for (int e = 0; e < elems; ++e) {
    const Value groups = (top + e) / elems;
    const Value at = place + groups * per_word + skips[static_cast<std::size_t>(e % per_word)];
    elements.push_back(elements_.at_offset(to_int(at + e * row_elems), Layout(Shape{row_elems})));
  }
  return elements;
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// The device side of qk_norm, qk_norm_rope and rope.
#include "kernels/qk_norm_rope/qk_norm_rope.h"
#include "kernels/qk_norm_rope/rope_turn.h"
#include "kernels/reshape_and_cache/cache_codes.h"
#include "kernels/rows/row_threads.h"
#include "kernels/rows/row_tree.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/loaded_together.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace tilewright {
namespace {

using QkParameters = QkArguments<Tensor>;

/// Consecutive elements of a head, the same of each of the thread's heads.
struct Span {
  Value column;
  Value active;    // inside the head, and the head exists
  int offset = 0;  // of the column from the thread's first
};

/// A span of one head. Widened where it is used, so that loads of many heads fit the registers.
struct Piece {
  Span span;
  Fragment stored;
};

class QkKernel {
 public:
  QkKernel(const QkConfig& config, QkParameters tensors, const Value& eps, const Value& weight_bias,
           const std::optional<Value>& attention_factor)
      : c_(config),
        t_(std::move(tensors)),
        eps_(eps),
        weight_bias_(weight_bias),
        attention_factor_(attention_factor),
        lane_(linear_thread_idx() % config.lanes) {}

  /// Every lane takes part in the sum: heads that do not exist count as zeros. All loads are on
  /// their way before the first sum.
  void run() const {
    if (c_.apart) {
      run_apart();
      return;
    }
    Type index = c_.wide_index ? s64 : s32;
    int groups = c_.heads_of_token() / c_.heads;  // of a token
    Value id = block_idx().x.to(index) * (c_.threads / c_.lanes) +
               (linear_thread_idx() / c_.lanes).to(index);
    Value token = id / groups;
    Head first{token, (id % groups).to(s32) * c_.heads,
               token < to_value(t_.q.shape()[0].value()).to(index)};
    run_heads(first);
  }

 private:
  struct Head {
    Value token, head, exists;
    std::optional<Value> of_block = {};  // apart: the part of `head` that the block knows
    Head next(int i) const { return i == 0 ? *this : Head{token, head + i, exists, of_block}; }
  };

  /// With heads of q and of k in blocks of their own, that branch on their index, pointers are read
  /// by uniform registers and nothing is divided.
  void run_apart() const {
    const int of_block = c_.threads / c_.lanes * c_.heads;
    const Value of_thread = (linear_thread_idx() / c_.lanes) * c_.heads;
    const Value part = block_idx().x, token = block_idx().y;
    const auto run_part = [&](bool is_q, const Value& from) {
      QkKernel kernel = *this;
      (is_q ? kernel.c_.k_heads : kernel.c_.q_heads) = 0;
      (is_q ? kernel.t_.k_weight : kernel.t_.q_weight).reset();
      const Value first = from * of_block;
      kernel.run_heads({token, first + of_thread, constant(pred, true), first});
    };
    const int q_parts = c_.q_heads / of_block;
    if_(part < q_parts, [&] { run_part(true, part); }).else_([&] {
      run_part(false, part - q_parts);
    });
  }

  void run_heads(const Head& first) const {
    const std::vector<Span> spans = spans_of(first);
    std::optional<Fragment> position;  // first, for the angles' addresses wait for it
    if (c_.style != RopeStyle::none) position.emplace(load_of_token(*t_.positions, first));
    std::vector<std::vector<Piece>> heads;
    heads.reserve(static_cast<std::size_t>(c_.heads));
    for (int i = 0; i < c_.heads; ++i)
      heads.push_back(load_pieces(first.next(i), spans));
    std::vector<Fragment> weights = load_weights(first, spans);
    std::optional<Fragment> slot_number;
    if (t_.slot_mapping) slot_number.emplace(load_of_token(*t_.slot_mapping, first));
    RopeTurn turn;
    if (position) turn = load_turn(first, (*position)[0]);
    if (c_.loads != QkLoads::free) load_before(heads, weights, position, slot_number);
    if (c_.loads == QkLoads::angles) load_before(heads, turn);
    // Or else the assembler keeps the last load of the heads back until the position is there.
    if (c_.apart && position) loaded_together({&heads.back().back().stored, 1}, {&*position, 1});
    std::optional<CacheSlot> slot;
    if (slot_number) slot.emplace(cache_slot(*t_.key_cache, (*slot_number)[0].get()));
    for (Fragment& weight : weights)
      weight = factors(first, weight);
    if (t_.inv_freq) turn = computed_turn(turn.cosines, (*position)[0], attention_factor_);
    turn.widen();
    for (int i = 0; i < c_.heads; ++i) {
      const std::vector<Piece>& pieces = heads[static_cast<std::size_t>(i)];
      const std::vector<Fragment> stored = finish(first.next(i), pieces, weights, turn);
      if (t_.v_out && c_.v_heads > 0) copy_values(first.next(i), pieces);
      if (slot) store_in_cache(first.next(i), pieces, stored, *slot);
    }
  }

  /// Accesses of a thread that together cover `elems` elements of the head.
  int rounds(int elems) const {
    int accesses = elems / c_.vector_elems;
    return (accesses + c_.lanes - 1) / c_.lanes;
  }
  int turned_elems() const { return c_.style == RopeStyle::neox ? c_.rotary / 2 : c_.rotary; }
  Value column(int round) const { return (lane_ + round * c_.lanes) * c_.vector_elems; }
  int offset(int round) const { return round * c_.lanes * c_.vector_elems; }

  Value is_q(const Head& head) const {
    if (c_.q_heads == 0) return constant(pred, false);
    if (c_.k_heads == 0) return constant(pred, true);
    return head.head < c_.q_heads;
  }
  Value is_v(const Head& head) const { return head.head >= c_.q_heads + c_.k_heads; }

  /// With distances that are known, 32-bit products are added to the base by an instruction each.
  Value address_of(const Tensor& tensor, const Value& token, const Value& head) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const std::int64_t size = bytes(tensor.type());
    const Int step = tensor.layout().stride()[0].value(),
              next = tensor.layout().stride()[1].value();
    const auto fits = [&](const Int& stride) {
      return stride.is_static() && stride.value() >= 0 && stride.value() <= kMost / size;
    };
    if (c_.wide_index || !fits(step) || !fits(next)) return tensor(token, head, 0).address();
    const Value of_token = mul_wide(token, constant(s32, step.value() * size));
    const Value of_head = mul_wide(head, constant(s32, next.value() * size));
    return tensor(0, 0, 0).address() + of_token.bitcast(u64) + of_head.bitcast(u64);
  }

  /// Of the thread's first element: what the block knows and what the thread knows meet last.
  Value address_apart(const Tensor& tensor, const Head& head) const {
    const int size = bytes(tensor.type());
    const auto stride = [&](int mode) {
      return to_value(tensor.layout().stride()[mode].value()).to(s32) * size;
    };
    const Value of_block = head.token * stride(0) + *head.of_block * stride(1);
    const Value of_thread =
        (head.head - *head.of_block) * stride(1) + lane_ * (c_.vector_elems * size);
    return tensor(0, 0, 0).address() + (of_block + of_thread).bitcast(u32).to(u64);
  }

  /// The element of a span in what head_of() returns.
  Element at(const Tensor& head, const Span& span) const {
    return c_.apart ? head(span.offset) : head(span.column);
  }

  Tensor elements_from(const Value& address) const {
    return Tensor(t_.q.type(), MemorySpace::global, address.assume({c_.alignment_bytes}),
                  Layout(Shape{c_.d}), c_.alignment_bytes);
  }

  /// The head's elements: of q, of k or of v, by the lane. Apart: from the thread's first one.
  Tensor head_of(const Tensor& q, const Tensor& k, const std::optional<Tensor>& v,
                 const Head& head) const {
    auto address = [&](const Tensor& tensor, const Value& h) {
      return c_.apart ? address_apart(tensor, head) : address_of(tensor, head.token, h);
    };
    auto at = [&](const Value& base) { return elements_from(base); };
    if (c_.k_heads == 0) return at(address(q, head.head));
    auto key = [&] {
      Value of_k = address(k, head.head - c_.q_heads);
      if (!v) return of_k;
      return select(is_v(head), address(*v, head.head - (c_.q_heads + c_.k_heads)), of_k);
    };
    if (c_.q_heads == 0) return at(key());
    return at(select(is_q(head), address(q, head.head), key()));
  }

  /// The turned spans first: for neox pairs of spans half the rotary part apart.
  std::vector<Span> spans_of(const Head& head) const {
    std::vector<Span> spans;
    int turned = turned_elems();
    for (int round = 0; round < rounds(turned); ++round) {
      Value active = head.exists && column(round) < turned;
      spans.push_back({column(round), active, offset(round)});
      if (c_.style == RopeStyle::neox) {
        spans.push_back({column(round) + turned, active, offset(round) + turned});
      }
    }
    int rest = c_.d - c_.rotary;
    for (int round = 0; round < rounds(rest); ++round) {
      spans.push_back({column(round) + c_.rotary, head.exists && column(round) < rest,
                       offset(round) + c_.rotary});
    }
    return spans;
  }

  std::vector<Piece> load_pieces(const Head& head, const std::vector<Span>& spans) const {
    Tensor in = head_of(t_.q, t_.k, t_.v, head);
    std::vector<Piece> pieces;
    pieces.reserve(spans.size());
    for (const Span& span : spans)
      pieces.push_back({span, load_if(span.active, at(in, span), c_.vector_elems)});
    return pieces;
  }

  /// Returns what it stored, one fragment a piece. Values are not stored here.
  std::vector<Fragment> finish(const Head& head, const std::vector<Piece>& pieces,
                               const std::vector<Fragment>& weights, const RopeTurn& turn) const {
    std::vector<Fragment> wide;
    wide.reserve(pieces.size());
    for (const Piece& piece : pieces)
      wide.push_back(piece.stored.to(f32));
    if (c_.norm) normalise(wide, weights);
    rotate(wide, turn);
    Tensor out = head_of(t_.q_out, t_.k_out, std::nullopt, head);
    std::vector<Fragment> stored;
    stored.reserve(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Span& span = pieces[i].span;
      stored.push_back(wide[i].to(t_.q.type()));
      Value active = c_.v_heads > 0 ? span.active && !is_v(head) : span.active;
      store_if(active, at(out, span), stored.back());
    }
    return stored;
  }

  /// A head of v as it came.
  void copy_values(const Head& head, const std::vector<Piece>& pieces) const {
    const Value h = head.head - (c_.q_heads + c_.k_heads);
    const Tensor out = elements_from(address_of(*t_.v_out, head.token, h));
    const Value mine = is_v(head);
    for (const Piece& piece : pieces)
      store_if(piece.span.active && mine, out(piece.span.column), piece.stored);
  }

  /// The token's number.
  Fragment load_of_token(const Tensor& numbers, const Head& head) const {
    return load_if(head.exists, numbers(head.token), 1);
  }

  /// All that does not wait for another load is on its way before a head's sum begins.
  void load_before(const std::vector<std::vector<Piece>>& heads,
                   const std::vector<Fragment>& weights, const std::optional<Fragment>& position,
                   const std::optional<Fragment>& slot_number) const {
    std::vector<Fragment> others = weights;
    for (const std::optional<Fragment>& number : {position, slot_number})
      if (number) others.push_back(*number);
    loaded_together(stored_of(heads), others);
  }

  /// So are the angles.
  void load_before(const std::vector<std::vector<Piece>>& heads, const RopeTurn& turn) const {
    std::vector<Fragment> angles = turn.cosines;
    angles.insert(angles.end(), turn.sines.begin(), turn.sines.end());
    loaded_together(stored_of(heads), angles);
  }

  static std::vector<Fragment> stored_of(const std::vector<std::vector<Piece>>& heads) {
    std::vector<Fragment> stored;
    for (const std::vector<Piece>& pieces : heads) {
      for (const Piece& piece : pieces)
        stored.push_back(piece.stored);
    }
    return stored;
  }

  /// Keys as they are stored in k_out, values as they came: as they are, or as codes.
  void store_in_cache(const Head& head, const std::vector<Piece>& pieces,
                      const std::vector<Fragment>& keys, const CacheSlot& slot) const {
    std::vector<Fragment> values;
    values.reserve(pieces.size());
    for (const Piece& piece : pieces)
      values.push_back(piece.stored);
    const Part key{*t_.key_cache, t_.k_scale, c_.q_heads,
                   slot.exists && !is_q(head) && !is_v(head)};
    const Part value{*t_.value_cache, t_.v_scale, c_.q_heads + c_.k_heads,
                     slot.exists && is_v(head)};
    if (c_.k_heads == 0) return;
    store_part(key, head, pieces, keys, slot);
    store_part(value, head, pieces, values, slot);
  }

  /// Keys or values.
  struct Part {
    const Tensor& cache;
    const std::optional<Tensor>& scale;
    int first_head;
    Value mine;  ///< whether the head is one of them, and has a slot
  };
  void store_part(const Part& part, const Head& head, const std::vector<Piece>& pieces,
                  const std::vector<Fragment>& elements, const CacheSlot& slot) const {
    const Value h = head.head - part.first_head;
    auto store_pieces = [&](const Value& mine, const std::vector<Fragment>& stored) {
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Span& span = pieces[i].span;
        store_if(span.active && mine,
                 part.cache.element(coord({slot.page, slot.offset, h, 0, span.column})), stored[i]);
      }
    };
    if (part.cache.type() == t_.q.type()) {
      store_pieces(part.mine, elements);
      return;
    }
    if_(part.mine, [&] {  // the other heads need not divide
      store_pieces(constant(pred, true), cache_codes(elements, part.scale, h, part.cache.type()));
    });
  }

  /// One a span, as they are stored; none where all factors are 1.
  std::vector<Fragment> load_weights(const Head& head, const std::vector<Span>& spans) const {
    std::vector<Fragment> weights;
    const bool none = !t_.q_weight && !t_.k_weight;
    if (!c_.norm || (none && !c_.has_weight_bias)) return weights;
    if (none) {
      Fragment absent(f32, c_.vector_elems);
      absent.fill(1.0f);
      weights.assign(spans.size(), absent);
      return weights;
    }
    const Tensor weight = weight_of(head);
    for (const Span& span : spans) {
      const Value active = has_both_weights() ? span.active : span.active && has_weight(head);
      weights.push_back(load_if(active, weight(span.column), c_.vector_elems));
    }
    return weights;
  }

  bool has_both_weights() const { return t_.q_weight && t_.k_weight; }
  /// Pre: there is one weight.
  Value has_weight(const Head& head) const { return t_.q_weight ? is_q(head) : !is_q(head); }

  /// Of the head, where there are both; else the one there is.
  Tensor weight_of(const Head& head) const {
    if (!has_both_weights()) return t_.q_weight ? *t_.q_weight : *t_.k_weight;
    const int alignment = std::min(t_.q_weight->alignment_bytes(), t_.k_weight->alignment_bytes());
    const Value base = select(is_q(head), (*t_.q_weight)(0).address(), (*t_.k_weight)(0).address());
    return Tensor(t_.q_weight->type(), MemorySpace::global, base.assume({alignment}),
                  Layout(Shape{c_.d}), alignment);
  }

  /// What the head's elements are multiplied by, in f32.
  Fragment factors(const Head& head, const Fragment& weight) const {
    Fragment wide = weight.to(f32);
    if (!has_both_weights() && (t_.q_weight || t_.k_weight)) {
      const Value mine = has_weight(head);
      wide = map(wide, [&](const Value& element) { return select(mine, element, 1.0f); });
    }
    return c_.has_weight_bias ? wide + weight_bias_ : wide;
  }

  /// Few steps, for the angles wait for them: 32 bits where tables cannot have more rows.
  Value row_of_angles(const Value& position) const {
    const Value zero = constant(s32, 0);
    if (c_.wide_index) return max(position, constant(position.type(), 0));
    if (bits(position.type()) == 32) return max(position, zero);
    return select((position >> 32).to(s32) < zero, zero, position.to(s32));
  }
  Element angle(const Value& row, const Value& column) const {
    const Tensor& table = *t_.cos_sin;
    const Int step = table.layout().stride()[0].value();
    const std::int64_t size = bytes(table.type());
    if (c_.wide_index || !step.is_static()) return table(row, column);
    const Value of_row = mul_wide(row, constant(s32, step.value() * size));
    return Tensor(table.type(), MemorySpace::global,
                  table(0, column).address() + of_row.bitcast(u64), Layout(Shape{c_.rotary}),
                  table.alignment_bytes())(0);
  }

  RopeTurn load_turn(const Head& head, const Value& stored) const {
    const Value row = row_of_angles(stored);
    RopeTurn turn;
    int turned = turned_elems();
    int count = c_.style == RopeStyle::neox ? c_.vector_elems : c_.vector_elems / 2;
    for (int round = 0; round < rounds(turned); ++round) {
      Value first = (lane_ + round * c_.lanes) * count;
      Value active = head.exists && column(round) < turned;
      auto load_part = [&](const Value& from) { return load_if(active, angle(row, from), count); };
      if (t_.inv_freq) {
        turn.cosines.push_back(load_if(active, (*t_.inv_freq)(first), count));
        continue;
      }
      turn.cosines.push_back(load_part(first));
      turn.sines.push_back(load_part(first + c_.rotary / 2));
    }
    return turn;
  }

  /// In one order for any number of lanes: what lies at one place of the head's parts (the halves
  /// that turn as pairs, and the rest) is added first, then places in a butterfly, their highest
  /// bit first.
  Value squares_of(const std::vector<Fragment>& head) const {
    const auto turned = static_cast<std::size_t>(rounds(turned_elems()));
    const auto rest = static_cast<std::size_t>(rounds(c_.d - c_.rotary));
    const std::size_t parts = c_.style == RopeStyle::neox ? 2 : 1;
    std::vector<rows::Numbers> places;
    for (std::size_t round = 0; round < std::max(turned, rest); ++round) {
      std::vector<Value> sums;
      for (std::size_t part = 0; round < turned && part < parts; ++part)
        sums.push_back(rows::sum_of_squares(head[round * parts + part]));
      if (round < rest) sums.push_back(rows::sum_of_squares(head[turned * parts + round]));
      places.push_back({rows::tree_sum(std::move(sums))});
    }
    const auto add = [](const Value& a, const Value& b) { return a + b; };
    rows::fold_halves(
        places, static_cast<int>(rows::power_of_two_from(static_cast<std::int64_t>(places.size()))),
        [&](const rows::Numbers& a, const rows::Numbers& b, int) {
          return rows::Numbers{add(a[0], b[0])};
        });
    return warp_reduce(places.front().front(), add, c_.lanes);
  }

  void normalise(std::vector<Fragment>& head, const std::vector<Fragment>& weights) const {
    const Value squares = squares_of(head);
    Value factor = rsqrt_approx(fma(squares, 1.0f / static_cast<float>(c_.d), eps_));
    for (std::size_t i = 0; i < head.size(); ++i) {
      head[i] = head[i] * factor;
      if (!weights.empty()) head[i] = head[i] * weights[i];
      if (c_.round_between) head[i] = head[i].to(t_.q.type()).to(f32);
    }
  }

  void rotate(std::vector<Fragment>& head, const RopeTurn& turn) const {
    for (std::size_t round = 0; round < turn.cosines.size(); ++round) {
      if (c_.style == RopeStyle::neox) {
        rotate_pair(head[2 * round], head[2 * round + 1], turn, round);
      } else {
        rotate_neighbours(head[round], turn, round);
      }
    }
  }

  void rotate_pair(Fragment& first, Fragment& second, const RopeTurn& turn,
                   std::size_t round) const {
    const Fragment& cosine = turn.cosines[round];
    const Fragment& sine = turn.sines[round];
    Fragment a = first * cosine + second * sine * -1.0f;
    second = second * cosine + first * sine;
    first = a;
  }

  void rotate_neighbours(Fragment& piece, const RopeTurn& turn, std::size_t round) const {
    Fragment turned(f32, piece.size());
    for (int i = 0; i < piece.size() / 2; ++i) {
      Value cosine = turn.cosines[round][i], sine = turn.sines[round][i];
      Value a = piece[2 * i], b = piece[2 * i + 1];
      turned[2 * i] = a * cosine - b * sine;
      turned[2 * i + 1] = b * cosine + a * sine;
    }
    piece = turned;
  }

  QkConfig c_;
  QkParameters t_;
  Value eps_, weight_bias_;
  std::optional<Value> attention_factor_;
  Value lane_;  // of the threads that share the head
};

}  // namespace

Traced QkPlan::trace(ptx::Target target) const {
  const char* style = config.style == RopeStyle::neox          ? "_neox"
                      : config.style == RopeStyle::interleaved ? "_interleaved"
                                                               : "";
  TraceOptions trace_options{
      .name = op + "_" + std::string(name(tensors.q.type)) + "_" + std::to_string(config.q_heads) +
              "x" + std::to_string(config.k_heads) + "x" + std::to_string(config.d) + style,
      .target = target,
      .block = {config.threads, 1, 1},
      .min_blocks_per_sm = config.resident};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& q, const Tensor& k, const Maybe& q_weight, const Maybe& k_weight,
                     const Maybe& positions, const Maybe& cos_sin, const Tensor& q_out,
                     const Tensor& k_out, const Maybe& v, const Maybe& slot_mapping,
                     const Maybe& key_cache, const Maybe& value_cache, const Maybe& k_scale,
                     const Maybe& v_scale, const Value& eps, const Value& weight_bias,
                     const Maybe& inv_freq, const std::optional<Value>& attention_factor,
                     const Maybe& v_out) {
    QkKernel(config,
             {q, k, q_weight, k_weight, positions, cos_sin, q_out, k_out, v, slot_mapping,
              key_cache, value_cache, k_scale, v_scale, inv_freq, v_out},
             eps, weight_bias, attention_factor)
        .run();
  };
  ScalarArg real{f32, {}};
  return tilewright::trace(
      trace_options, body, args.q, args.k, args.q_weight, args.k_weight, args.positions,
      args.cos_sin, args.q_out, args.k_out, args.v, args.slot_mapping, args.key_cache,
      args.value_cache, args.k_scale, args.v_scale, real, real, args.inv_freq,
      config.has_attention_factor ? std::optional(real) : std::nullopt, args.v_out);
}

}  // namespace tilewright

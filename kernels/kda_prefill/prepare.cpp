// SPDX-License-Identifier: Apache-2.0
// The first kernel of the chunked form: a block makes the record of a chunk and value head.
#include "kernels/kda_prefill/chunk_place.h"
#include "kernels/kda_prefill/chunk_rows.h"
#include "kernels/kda_prefill/kda_prefill.h"
#include "kernels/kda_prefill/pair_products.h"
#include "kernels/kda_prefill/triangular_inverse.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/control.h"
#include "tilewright/ordered.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tilewright {
namespace {

constexpr int kDiagonalStride = 24;  // of rows of 16 f32: pairs of four rows are in different banks

/// The block's shared memory, in bytes.
struct SmemMap {
  explicit SmemMap(const ChunkShape& s) {
    std::int64_t at = 0;
    auto take = [&](std::int64_t size) {
      std::int64_t begin = at;
      at += (size + 1023) / 1024 * 1024;
      return begin;
    };
    tiles = take(std::int64_t{8} * s.vectors_elems());
    outgoing = take(std::int64_t{4} * s.matrix_elems());
    diagonal = take(std::int64_t{4} * s.tokens * kDiagonalStride);
    beside = take(std::int64_t{s.tokens} * kBlockRows);
    corner = take(std::int64_t{2} * 32 * 32);
    totals = take(std::int64_t{4} * s.blocks() * s.k);
    sums = take(std::int64_t{4} * 3 * 2 * s.tokens);
    rows = take(std::int64_t{4} * 4 * s.tokens);
    bytes = at;
  }
  std::int64_t tiles, outgoing, diagonal, beside, corner, totals, sums, rows, bytes;
};

struct PrepareParameters {
  Tensor q, k, a, b;
  std::optional<Tensor> a_log, dt_bias, cu_seqlens;
  Tensor records;
  kda::GateParameters gate;
};

/// Sums of `values` over the lanes of a warp: lane l gets that of value l % n, in f32.
Value summed_by_lane(std::vector<Value> values) {
  int mask = 16;
  auto n = values.size();
  for (; n > 1; n /= 2, mask /= 2) {
    Value upper = (lane_idx() & mask) != 0;
    std::vector<Value> kept;
    for (std::size_t i = 0; i < n / 2; ++i) {
      const Value& low = values[i];
      const Value& high = values[i + n / 2];
      kept.push_back(select(upper, high, low) + shuffle_xor(select(upper, low, high), mask));
    }
    values.swap(kept);
  }
  Value sum = values.front();
  return warp_reduce(
      sum, [](const Value& a, const Value& b) { return a + b; }, 2 * mask);
}

class PrepareKernel {
 public:
  PrepareKernel(const ChunkConfig& config, const PrepareParameters& parameters)
      : c_(config),
        s_(config.shape),
        p_(parameters),
        map_(config.shape),
        rows_(thread_rows(config.shape)),
        places_(config.shape, rows_, config.shape.tokens) {}

  void run() const {
    Value v_head = block_idx().x % c_.v_heads;
    Value place = (block_idx().x / c_.v_heads).to(s64);
    Value tokens = to_value(p_.q.shape()[1].value());
    Value n = sequence_of(p_.cu_seqlens, place, tokens, s_.tokens);
    SequenceSpan span = sequence_span(p_.cu_seqlens, n, tokens, s_.tokens);
    Value begin = span.begin + (place - span.first_place).to(s32) * s_.tokens;
    Value count = min(span.end - begin, s_.tokens);
    if_(count > 0, [&] { make_record({span.row, begin, count, v_head}); });
  }

 private:
  /// Where the chunk is.
  struct Chunk {
    Value n, begin, count, v_head;
  };

  Value q_head(const Chunk& chunk) const { return chunk.v_head / (c_.v_heads / c_.q_heads); }
  bool has_channel_decays() const {
    return c_.gate != DecayGate::factor && c_.gate != DecayGate::fixed;
  }

  Tensor floats(std::int64_t at, const Layout& layout) const {
    return dynamic_shared(f32, layout, at);
  }
  MatrixTile halves(std::int64_t at, int rows, int columns) const {
    return {dynamic_shared(s_.operand(), make_row_major(Shape{rows * columns}), at), rows, columns,
            widest_swizzle(s_.operand(), columns)};
  }
  LowerBlocks coupling() const {
    LowerBlocks blocks{floats(
        map_.diagonal, Layout(Shape{s_.tokens, kDiagonalStride}, Stride{kDiagonalStride, 1}))};
    if (s_.blocks() > 1) blocks.beside.emplace(halves(map_.beside, s_.tokens / 2, kBlockRows));
    if (s_.blocks() > 2) blocks.corner.emplace(halves(map_.corner, 32, 32));
    return blocks;
  }
  /// Rows of scalars, one a token.
  enum class Row { beta, diagonal, q_factor, k_factor };
  Tensor row(Row which) const {
    return floats(map_.rows + std::int64_t{4} * static_cast<int>(which) * s_.tokens,
                  make_row_major(Shape{s_.tokens}));
  }
  Tensor totals() const { return floats(map_.totals, make_row_major(Shape{s_.blocks(), s_.k})); }

  Value inside(const Chunk& chunk, int row) const { return rows_.first_row() + row < chunk.count; }

  /// The pairs of channels of the thread's rows, zeros for rows that the chunk lacks.
  Fragment load_rows(const Chunk& chunk, const Tensor& from, const Value& head) const {
    Fragment all(from.type(), 2 * kBlockRows);
    Value first = chunk.begin + rows_.first_row();
    std::optional<Tensor> at(from.slice(coord({chunk.n, first, head, _})));  // [K]
    Int step = from.layout().stride()[1].value();
    for (int row = 0; row < kBlockRows; ++row) {
      if (row > 0) at.emplace(at->at_offset(step, at->layout()));
      all.part(2 * row, 2).assign(load_if(inside(chunk, row), (*at)(rows_.channel), 2));
    }
    return all;
  }

  /// Squares of q, squares of k, and q k of each row, summed over the row's warps.
  void sum_rows(const Fragment& q, const Fragment& k) const {
    Fragment wide_q = q.to(f32), wide_k = k.to(f32);
    auto products = [](const Fragment& a, const Fragment& b) {
      std::vector<Value> out;
      out.reserve(kBlockRows);
      for (int row = 0; row < kBlockRows; ++row)
        out.push_back(fma(a[2 * row], b[2 * row], a[2 * row + 1].get() * b[2 * row + 1].get()));
      return out;
    };
    std::vector<Value> squares = products(wide_q, wide_q);
    for (Value& each : products(wide_k, wide_k))
      squares.push_back(std::move(each));
    Value square = summed_by_lane(squares);
    Value both = summed_by_lane(products(wide_q, wide_k));
    Value lane = lane_idx(), part = rows_.channel / 64;
    Tensor sums = floats(map_.sums, make_row_major(Shape{3, 2, s_.tokens}));
    sums(lane / kBlockRows, part, rows_.first_row() + lane % kBlockRows) = square;
    if_(lane % 2 == 0, [&] { sums(2, part, rows_.first_row() + lane / 2) = both; });
  }

  /// What each token has one of, from those sums and the gates.
  void finish_rows(const Chunk& chunk) const {
    Value token = thread_idx().x;
    if_(token < s_.tokens, [&] {
      Value at = token.assume({1, 0, s_.tokens - 1});
      Tensor sums = floats(map_.sums, make_row_major(Shape{3, 2, s_.tokens}));
      auto sum = [&](int which) {
        Value all = sums(which, 0, at).load();
        return s_.k > 64 ? all + sums(which, 1, at).load() : all;
      };
      auto factor = [&](int which) {
        return s_.corrects ? rsqrt_approx(sum(which) + 1e-6f) : constant(f32, 1.0f);
      };
      Value q = factor(0), k = factor(1);
      row(Row::q_factor)(at) = q;
      row(Row::k_factor)(at) = k;
      row(Row::diagonal)(at) = sum(2) * q * k;
      row(Row::beta)(at) = beta(chunk, at);
    });
  }

  Value beta(const Chunk& chunk, const Value& token) const {
    Value there = token < chunk.count;
    // A token that the chunk lacks reads the first one's, and has 0.
    Value t = chunk.begin + select(there, token, 0);
    if (!s_.corrects) return constant(f32, 0.0f);
    Value b = p_.b(chunk.n, t, chunk.v_head).load().to(f32);
    Value strength = c_.gate == DecayGate::factor ? b : kda::sigmoid_approx(b);
    return select(there, c_.neg_eigval ? strength * 2.0f : strength, 0.0f);
  }

  /// One factor a token, or one for all of them, for all channels.
  Fragment token_decays(const Chunk& chunk) const {
    Fragment factors(f32, 2 * kBlockRows);
    auto decay = [&](int row) {
      if (c_.gate == DecayGate::fixed) return kda::fixed_decay(p_.a(q_head(chunk)).load());
      // A token that the chunk lacks reads the first one's.
      Value t = chunk.begin + select(inside(chunk, row), rows_.first_row() + row, 0);
      return p_.a(chunk.n, t, chunk.v_head).load();
    };
    for (int row = 0; row < kBlockRows; ++row) {
      Value factor = select(inside(chunk, row), decay(row), 1.0f);
      factors[2 * row] = factor;
      factors[2 * row + 1] = factor;
    }
    return factors;
  }

  /// Decay factors of the thread's part; 1 for rows that the chunk lacks.
  Fragment decays(const Chunk& chunk, const Fragment& a) const {
    if (!has_channel_decays()) return token_decays(chunk);
    Fragment u = a.to(f32);
    Fragment factors = u;
    if (c_.gate == DecayGate::given) {
      factors = kda::decay_factors(u);
    } else {
      kda::GateRate rate =
          p_.a_log ? kda::gate_rate((*p_.a_log)(chunk.v_head)) : kda::rate_of_one();
      if (p_.dt_bias) {
        Fragment bias = load((*p_.dt_bias)(chunk.v_head, rows_.channel), 2);
        for (int e = 0; e < 2 * kBlockRows; ++e)
          u[e] = u[e].get() + bias[e % 2].get();
      }
      factors = kda::decay_factors(u, rate, c_.gate == DecayGate::safe, p_.gate);
    }
    for (int e = 0; e < 2 * kBlockRows; ++e)
      factors[e] = select(inside(chunk, e / 2), factors[e].get(), 1.0f);
    return factors;
  }

  void store_total(const Fragment& decay) const {
    Fragment total = decay.part(0, 2);
    for (int row = 1; row < kBlockRows; ++row)
      total = total * decay.part(2 * row, 2);
    store(totals()(rows_.block, rows_.channel), total);
  }

  /// x as an operand, of length 1 with a correction.
  Fragment normalised(const Fragment& x, Row factors) const {
    Fragment factor = load(row(factors)(rows_.first_row()), kBlockRows);
    Fragment wide = x.to(f32);
    for (int e = 0; e < 2 * kBlockRows; ++e)
      wide[e] = wide[e].get() * factor[e / 2].get();
    return wide.to(s_.operand());
  }

  /// The decays of the blocks before the thread's, or after it.
  enum class Side { before, after };
  Fragment outer_decay(Side side) const {
    Fragment product = pair_of(constant(f32, 1.0f), constant(f32, 1.0f));
    for (int block = 0; block < s_.blocks(); ++block) {
      Value counts = side == Side::before ? rows_.block > block : rows_.block < block;
      Fragment total = load(totals()(block, rows_.channel), 2);
      for (int e = 0; e < 2; ++e)
        product[e] = product[e].get() * select(counts, total[e].get(), 1.0f);
    }
    return product;
  }

  void store_vectors(const RowValues& values, const Tensor& record) const {
    auto part = [&](int i) {
      return record.at_offset(Int(i * s_.vectors_elems()),
                              make_row_major(Shape{s_.vectors_elems()}));
    };
    Tensor queries = part(0), after = part(1), keys = part(2);
    decays_from_start(values, outer_decay(Side::before), 0, kBlockRows,
                      [&](int row, const Fragment& factor) {
                        if (s_.corrects)
                          store(places_.in(keys, row), scaled_pair(values.k, row, factor));
                        store(places_.in(queries, row), scaled_pair(values.q, row, factor));
                      });
    decays_to_end(values, outer_decay(Side::after), 0, kBlockRows,
                  [&](int row, const Fragment& factor) {
                    store(places_.in(after, row), scaled_pair(values.k, row, factor));
                  });
  }

  /// The decay of the whole chunk, by the first block's threads.
  void store_decay(const Tensor& record) const {
    Value base = record.base() + constant(u64, s_.decay_at() * 2);
    Tensor decay(f32, MemorySpace::global, base, make_row_major(Shape{s_.k}), 16);
    if_(rows_.block == 0, [&] {
      Fragment all = outer_decay(Side::after);
      Fragment own = load(totals()(0, rows_.channel), 2);
      store(decay(rows_.channel), all * own);
    });
  }

  /// The matrices of a record, before they are stored: P, then M diag(beta).
  MatrixTile outgoing(int which) const {
    return halves(map_.outgoing + std::int64_t{2} * which * s_.matrix_elems(), s_.tokens,
                  s_.tokens);
  }

  /// Zeros for what the products leave alone.
  void clear_outgoing() const {
    int threads = c_.prepare_threads(), elems = s_.matrices_elems();
    Tensor all = dynamic_shared(s_.operand(), make_row_major(Shape{elems}), map_.outgoing);
    Fragment zeros(s_.operand(), 8);
    for (int at = 0; at < elems; at += 8 * threads) {
      Value begin = (thread_idx().x * 8 + at);
      if (at + 8 * threads <= elems) {
        store(all(begin), zeros);
      } else {
        if_(begin < elems, [&] { store(all(begin), zeros); });
      }
    }
  }

  void make_record(const Chunk& chunk) const {
    Value head = q_head(chunk);
    Fragment q = load_rows(chunk, p_.q, head), k = load_rows(chunk, p_.k, head);
    Fragment a = has_channel_decays() ? load_rows(chunk, p_.a, chunk.v_head) : q;
    clear_outgoing();
    sum_rows(q, k);
    barrier();
    finish_rows(chunk);
    Fragment decay = decays(chunk, a);
    store_total(decay);
    barrier();
    RowValues values{normalised(q, Row::q_factor), normalised(k, Row::k_factor), decay};
    Tensor record = p_.records(block_idx().x.to(s64), _);
    store_vectors(values, record);
    store_decay(record);
    PairTargets targets{
        dynamic_shared(s_.operand(), make_row_major(Shape{4 * s_.vectors_elems()}), map_.tiles),
        std::nullopt,
        outgoing(0),
        row(Row::beta),
        row(Row::diagonal),
        totals()};
    if (s_.corrects) targets.coupling.emplace(coupling());
    pair_products(s_, rows_, values, targets);
    if (s_.corrects) {
      barrier();
      // The inverses of halves come after the products, in the same place.
      int columns = std::min(2 * kBlockRows, s_.tokens);
      triangular_inverse(*targets.coupling,
                         {outgoing(1), halves(map_.tiles, s_.tokens, columns), row(Row::beta)},
                         s_.tokens, c_.prepare_threads() / 32);
    }
    fence_async_proxy();
    barrier();
    if_(thread_idx().x == 0, [&] {
      Tensor from =
          dynamic_shared(s_.operand(), make_row_major(Shape{s_.matrices_elems()}), map_.outgoing);
      bulk_store(record(s_.matrices_at()), from(0), 2 * s_.matrices_elems());
      bulk_commit();
      bulk_wait();
    });
  }

  const ChunkConfig& c_;
  const ChunkShape& s_;
  const PrepareParameters& p_;
  SmemMap map_;
  ThreadRows rows_;
  PairPlaces places_;
};

}  // namespace

std::int64_t ChunkConfig::prepare_smem_bytes() const { return SmemMap(shape).bytes; }

Traced ChunkPreparePlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = op + "_prepare_" + std::to_string(config.q_heads) + "x" +
                                     std::to_string(config.v_heads),
                             .target = target,
                             .block = {config.prepare_threads(), 1, 1},
                             .min_blocks_per_sm = 2};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& q, const Tensor& k, const Tensor& a, const Tensor& b,
                     const Maybe& a_log, const Maybe& dt_bias, const Maybe& cu_seqlens,
                     const Tensor& chunk_records, const Value& lower_bound,
                     const Value& softplus_beta, const Value& softplus_threshold) {
    PrepareParameters parameters{q,
                                 k,
                                 a,
                                 b,
                                 a_log,
                                 dt_bias,
                                 cu_seqlens,
                                 chunk_records,
                                 {lower_bound, softplus_beta, softplus_threshold}};
    PrepareKernel(config, parameters).run();
  };
  ScalarArg real{f32, {}};
  return tilewright::trace(trace_options, body, args.q, args.k, args.a, args.b, args.A_log,
                           args.dt_bias, args.cu_seqlens, records_arg, real, real, real);
}

}  // namespace tilewright

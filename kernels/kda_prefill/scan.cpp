// SPDX-License-Identifier: Apache-2.0
// The second kernel of the chunked form: a warp carries 16 rows of a head's state over the chunks.
#include "kernels/kda_prefill/chunk_place.h"
#include "kernels/kda_prefill/handover.h"
#include "kernels/kda_prefill/kda_prefill.h"
#include "kernels/kda_prefill/lane_rows.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/cluster.h"
#include "tilewright/control.h"
#include "tilewright/mma.h"
#include "tilewright/pipeline.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/warp.h"

namespace tilewright {
namespace {

constexpr int kStep = 16;  // of k: m16n8k16

struct ScanParameters {
  Tensor v;
  std::optional<Tensor> cu_seqlens, state, indices;
  Tensor out;
  std::optional<Tensor> final_state;
  Tensor records;
  Value scale;
};

/// Everything of a warp is transposed: 16 columns of v are the rows of its matrices, tokens or
/// channels their columns. So sums of one product are, converted, the left operand of the next.
class ScanKernel {
 public:
  ScanKernel(const ChunkConfig& config, const ScanParameters& parameters)
      : c_(config),
        s_(config.shape),
        p_(parameters),
        value_rows_(TensorSwizzle::b32, SecondMatrix::beside),
        vectors_(TensorSwizzle::b128),
        matrices_(widest_swizzle(config.shape.operand(), config.shape.tokens)) {}

  void run() const {
    int slices = c_.v / c_.scan_columns();
    Value head = block_idx().x / slices;
    Value n = (head / c_.v_heads).to(s64), v_head = head % c_.v_heads;
    Value slot = p_.indices ? (*p_.indices)(n).load({.read_only = true}).to(s64) : n;
    SequenceSpan span =
        sequence_span(p_.cu_seqlens, n, to_value(p_.v.shape()[1].value()), s_.tokens);
    Value chunks = (span.end - span.begin + (s_.tokens - 1)) / s_.tokens;
    Value active = select(slot >= 0, chunks, 0);
    std::optional<Handover> handover;
    if (c_.readers()) handover.emplace(s_, c_.scan_warps, c_.handover_at());
    BulkPipeline pipe(c_.stages, c_.scan_warps * (c_.readers() ? 2 : 1), c_.cluster);
    auto rows_of = [&](const Value& warp) {
      Value first = block_idx().x % slices * c_.scan_columns() + warp * kBlockRows;
      return Rows{slot, v_head, first};
    };
    auto carry_states = [&] {
      if_(slot >= 0, [&] { carry(pipe, handover, span, rows_of(warp_idx()), chunks); });
    };
    auto read_outputs = [&] {
      Value pair = (warp_idx() - c_.scan_warps).assume({1, 0, c_.scan_warps - 1});
      if_(slot >= 0, [&] { read(pipe, *handover, span, rows_of(pair), chunks); });
    };
    auto produce = [&] {
      pipe.produce(active, [&](const Value& i, const Value& stage, const Mbarrier& full) {
        full.arrive_expect_tx(2 * s_.used_elems());
        Value number = (span.first_place + i.to(s64)) * c_.v_heads + v_head.to(s64);
        fetch_record(stage_memory(stage), p_.records(number, _), full);
      });
    };
    if (c_.readers()) {
      roles(role(c_.scan_warps, 0, carry_states), role(c_.scan_warps, 0, read_outputs),
            role(1, 0, produce));
    } else {
      roles(role(c_.scan_warps, c_.carrier_registers(), carry_states),
            role(c_.producer_warps(), c_.producer_registers(),
                 [&] { if_(warp_idx() == c_.scan_warps, produce); }));
    }
    if (c_.cluster > 1) cluster_barrier();  // a peer may still copy to here
  }

 private:
  /// The warp's rows of the state.
  struct Rows {
    Value slot, v_head, first;
  };

  /// Each block of the cluster fetches its part of the record for all of them.
  void fetch_record(const Tensor& to, const Tensor& record, const Mbarrier& full) const {
    int bytes = 2 * s_.used_elems() / c_.cluster;
    if (c_.cluster == 1) return bulk_load(to(0), record(0), bytes, full);
    Value first = cluster_rank() * (bytes / 2);
    bulk_load_multicast(to(first), record(first), bytes, full, (1 << c_.cluster) - 1);
  }

  Tensor stage_memory(const Value& stage) const {
    Tensor ring = dynamic_shared(s_.operand(), make_row_major(Shape{c_.stages, s_.record_elems()}));
    return ring(stage, _);
  }
  /// The warp's two buffers of [tokens, 16] of v, and then of out.
  MatrixTile values_tile(const Value& which) const {
    int elems = s_.tokens * kBlockRows;
    Tensor all = dynamic_shared(bf16, make_row_major(Shape{2 * c_.scan_warps, elems}),
                                c_.stages * s_.record_bytes());
    return {all(warp_idx() * 2 + which, _), s_.tokens, kBlockRows, TensorSwizzle::b32};
  }

  /// A reading warp's tile of out.
  MatrixTile out_tile(const Value& pair) const {
    int elems = s_.tokens * kBlockRows;
    Tensor all = dynamic_shared(bf16, make_row_major(Shape{c_.scan_warps, elems}), c_.out_at());
    return {all(pair, _), s_.tokens, kBlockRows, TensorSwizzle::b32};
  }

  static Value other(const Value& buffer) { return (1 - buffer).assume({1, 0, 1}); }

  int key_tiles() const { return s_.k / 8; }
  int token_tiles() const { return s_.tokens / 8; }

  /// Calls visit(element, row, channel) for pairs of channels of the state, element the first's
  /// index in the fragment.
  template <class Visit>
  void each_pair(const Rows& rows, Visit&& visit) const {
    Value row = rows.first + lane_idx() / 4, channel = lane_idx() % 4 * 2;
    for (int tile = 0; tile < key_tiles(); ++tile) {
      for (int half = 0; half < 2; ++half)
        visit(4 * tile + 2 * half, row + 8 * half, channel + 8 * tile);
    }
  }

  void load_state(const Fragment& state, const Rows& rows) const {
    if (!p_.state) return state.fill(0.0f);
    Tensor of_head = p_.state->slice(coord({rows.slot, rows.v_head, _, _}));
    each_pair(rows, [&](int e, const Value& row, const Value& channel) {
      if (c_.layout == StateLayout::vk) {
        state.part(e, 2).assign(load(of_head(row, channel), 2));
      } else {
        state[e] = of_head(channel, row).load();
        state[e + 1] = of_head(channel + 1, row).load();
      }
    });
  }

  void store_state(const Fragment& state, const Rows& rows) const {
    Tensor of_head = p_.final_state->slice(coord({rows.slot, rows.v_head, _, _}));
    each_pair(rows, [&](int e, const Value& row, const Value& channel) {
      if (c_.layout == StateLayout::vk) {
        store(of_head(row, channel), state.part(e, 2));
      } else {
        of_head(channel, row) = state[e].get();
        of_head(channel + 1, row) = state[e + 1].get();
      }
    });
  }

  /// The pieces of 16 bytes that a lane copies of v or out: token and column of the first element.
  template <class Visit>
  void each_piece(Visit&& visit) const {
    for (int i = 0; i < s_.tokens * 2; i += 32) {
      Value piece = lane_idx() + i;
      auto copy = [&] {
        visit((piece / 2).assume({1, 0, s_.tokens - 1}), (piece % 2 * 8).assume({8, 0, 8}));
      };
      if (i + 32 <= s_.tokens * 2) {
        copy();
      } else {
        if_(piece < s_.tokens * 2, copy);
      }
    }
  }

  void fetch_values(const SequenceSpan& span, const Rows& rows, const Value& chunk,
                    const Value& buffer) const {
    MatrixTile tile = values_tile(buffer);
    Value begin = span.begin + chunk * s_.tokens;
    each_piece([&](const Value& token, const Value& column) {
      Value inside = begin + token < span.end;
      copy_async_if(inside, tile.element(token, column),
                    p_.v(span.row, begin + token, rows.v_head, rows.first + column), 16);
    });
    cp_async_commit();
  }

  /// v of the chunk, [16, tokens], in the layout of sums.
  Fragment read_values(const MatrixTile& tile) const {
    Fragment all(bf16, 8 * s_.blocks());
    for (int i = 0; i < s_.blocks(); ++i) {
      Element row = value_rows_.at(tile, Int(kStep * i), 0);
      all.part(8 * i, 8).assign(ldmatrix(row, 4, Transposed::yes));
    }
    return all;
  }

  void write_out(const MatrixTile& tile, const Fragment& out, const SequenceSpan& span,
                 const Rows& rows, const Value& chunk) const {
    Fragment rounded = out.to(bf16);
    for (int i = 0; i < s_.blocks(); ++i)
      stmatrix(value_rows_.at(tile, Int(kStep * i), 0), rounded.part(8 * i, 8), Transposed::yes);
    warp_barrier();
    Value begin = span.begin + chunk * s_.tokens;
    each_piece([&](const Value& token, const Value& column) {
      Fragment piece = load(tile.element(token, column), 8);
      store_if(begin + token < span.end,
               p_.out(span.row, begin + token, rows.v_head, rows.first + column), piece);
    });
  }

  /// sums [16, 16] += a b from column `column` of the sums on.
  static void multiply(const Fragment& sums, int column, const Fragment& a, const Fragment& b) {
    mma(sums.part(column / 2, 4), a, b.part(0, 4));
    mma(sums.part(column / 2 + 4, 4), a, b.part(4, 4));
  }

  /// sums [16, tokens] += a times rows of b, from 16 columns of b on.
  void multiply_tokens(const OperandLoader& loader, const Fragment& sums, const Fragment& a,
                       const MatrixTile& b, int column, int first_token = 0) const {
    for (int token = first_token; token < s_.tokens; token += kStep)
      multiply(sums, token, a, loader.b(b, Int(token), column));
  }

  /// Keeps the largest number of state and v, times a power of two, where f16 has all its bits.
  void keep_in_range(const Fragment& state, Var& scale, const Fragment& values) const {
    constexpr float kLeast = 0x1p-4f, kMost = 0x1p+8f, kWanted = 0x1p+2f;
    auto largest_of = [](const Fragment& numbers) {
      return reduce(map(numbers, [](const Value& x) { return abs(x); }),
                    [](const Value& a, const Value& b) { return max(a, b); });
    };
    Value largest = max(largest_of(values.to(f32)) * scale, largest_of(state));
    Value bits = redux_max(largest.bitcast(u32));
    Value most = bits.bitcast(f32);
    Value misplaced = most > kMost || (most < kLeast && most > 0.0f);
    // 2^126 is the largest power of two whose inverse is a normal number too.
    if_(misplaced && most < 0x1p+126f, [&] {
      Value power = (bits & 0x7f800000u).bitcast(f32);
      Value factor = kWanted / power;
      scale *= factor;
      for (int e = 0; e < state.size(); ++e)
        state[e] = state[e].get() * factor;
    });
  }

  /// visit(chunk, cursor) when the chunk's stage is full.
  template <class Visit>
  static void each_chunk(const BulkPipeline& pipe, const Value& chunks, Visit&& visit) {
    StageCursor cursor = pipe.cursor();
    for_(chunks, [&](const Value& chunk) {
      pipe.wait_full(cursor);
      visit(chunk, cursor);
      cursor.advance();
    });
  }

  /// Hands a stage back, and passes a barrier of the warp.
  static void release(const BulkPipeline& pipe, const StageCursor& cursor) {
    fence_async_proxy(ProxySpace::shared);  // or copies may overtake the reads
    pipe.release(cursor);
  }

  void carry(const BulkPipeline& pipe, const std::optional<Handover>& handover,
             const SequenceSpan& span, const Rows& rows, const Value& chunks) const {
    Fragment state = Fragment::undefined(f32, 4 * key_tiles());
    load_state(state, rows);
    Var scale(constant(f32, 1.0f));
    Fragment values(bf16, 8 * s_.blocks());
    // v of a chunk is here before its record is: the state and v are brought into range together.
    // Behind a barrier of the warp that follows the wait for its copies.
    auto take_values = [&](const Value& chunk, const Value& buffer) {
      values.assign(read_values(values_tile(buffer)));
      if_(chunk + 1 < chunks, [&] { fetch_values(span, rows, chunk + 1, other(buffer)); });
      keep_in_range(state, scale, values);
    };
    if_(chunks > 0, [&] {
      fetch_values(span, rows, constant(s32, 0), constant(s32, 0));
      cp_async_wait(0);
      warp_barrier();
      take_values(constant(s32, 0), constant(s32, 0));
    });
    each_chunk(pipe, chunks, [&](const Value& chunk, const StageCursor& at_stage) {
      Value buffer = (chunk % 2).assume({1, 0, 1});
      ChunkRecord record(s_, stage_memory(at_stage.stage()));
      if (handover) {
        Handover::Buffer to = handover->buffer(warp_idx(), chunk);
        to.wait_empty();
        advance(record, state, scale, values.to(f32), to);
      } else {
        Outputs out(*this);
        Value factor = p_.scale / scale;
        advance(record, state, scale, values.to(f32), out);
        write_out(values_tile(buffer), out.sums * factor, span, rows, chunk);
      }
      // Nothing waits for the last chunk's stage.
      if_(chunk + 1 < chunks, [&] {
        cp_async_wait(0);
        release(pipe, at_stage);
        take_values(chunk + 1, other(buffer));
      });
    });
    if (!p_.final_state) return;
    Value back = 1.0f / Value(scale);
    for (int e = 0; e < state.size(); ++e)
      state[e] = state[e].get() * back;
    store_state(state, rows);
  }

  /// Outputs of the carrying warp's own making.
  struct Outputs {
    explicit Outputs(const ScanKernel& of) : kernel(of), sums(f32, 4 * of.token_tiles()) {
      sums.fill(0.0f);
    }
    void put_state(const ChunkRecord& record, int step, const Fragment& a) const {
      kernel.multiply_tokens(kernel.vectors_, sums, a, record.queries(), step * kStep);
    }
    void put_added(const ChunkRecord& record, const Fragment& added, const Value&) const {
      for (int token = 0; token < kernel.s_.tokens; token += kStep) {
        kernel.multiply_tokens(kernel.matrices_, sums, added.part(token / 2, 8), record.attention(),
                               token, token);
      }
    }
    const ScanKernel& kernel;
    Fragment sums;
  };

  /// The warp that makes the outputs of a state that another carries.
  void read(const BulkPipeline& pipe, const Handover& handover, const SequenceSpan& span,
            const Rows& rows, const Value& chunks) const {
    Value pair = (warp_idx() - c_.scan_warps).assume({1, 0, c_.scan_warps - 1});
    each_chunk(pipe, chunks, [&](const Value& chunk, const StageCursor& at_stage) {
      ChunkRecord record(s_, stage_memory(at_stage.stage()));
      Handover::Buffer from = handover.buffer(pair, chunk);
      from.wait_full();
      Outputs out(*this);
      for (int step = 0; step < s_.k / kStep; ++step)
        out.put_state(record, step, from.state(step));
      Value scale = from.scale();
      out.put_added(record, from.added(), scale);
      release(pipe, at_stage);
      from.release();
      write_out(out_tile(pair), out.sums * (p_.scale / scale), span, rows, chunk);
    });
  }

  /// D^T of the delta rule; `to` gets the state.
  template <class To>
  Fragment corrections(const ChunkRecord& record, const Fragment& state, const Var& scale,
                       const Fragment& values, const To& to) const {
    Fragment predictions(f32, 4 * token_tiles());
    predictions.fill(0.0f);
    for (int k = 0; k < s_.k; k += kStep) {
      Fragment a = state.part(k / 2, 8).to(f16);
      multiply_tokens(vectors_, predictions, a, record.keys(), k);
      to.put_state(record, k / kStep, a);
    }
    Fragment errors = zip_map(values, predictions, [&](const Value& v, const Value& prediction) {
                        return fma(v, scale, -prediction);
                      }).to(f16);
    Fragment corrected(f32, 4 * token_tiles());
    corrected.fill(0.0f);
    for (int token = 0; token < s_.tokens; token += kStep) {
      Fragment a = errors.part(token / 2, 8);
      multiply_tokens(matrices_, corrected, a, record.solve(), token, token);
    }
    return corrected.to(f16);
  }

  /// V^T itself.
  template <class To>
  Fragment uncorrected(const ChunkRecord& record, const Fragment& state, const Var& scale,
                       const Fragment& values, const To& to) const {
    for (int k = 0; k < s_.k; k += kStep)
      to.put_state(record, k / kStep, state.part(k / 2, 8).to(s_.operand()));
    return (values * scale).to(s_.operand());
  }

  /// Takes the state over a chunk; `to` gets what outputs are made of.
  template <class To>
  void advance(const ChunkRecord& record, const Fragment& state, const Var& scale,
               const Fragment& values, const To& to) const {
    Fragment added = s_.corrects ? corrections(record, state, scale, values, to)
                                 : uncorrected(record, state, scale, values, to);
    to.put_added(record, added, scale);
    decay_state(record.decay(), state);
    for (int token = 0; token < s_.tokens; token += kStep) {
      Fragment a = added.part(token / 2, 8);
      for (int k = 0; k < s_.k; k += kStep)
        multiply(state, k, a, vectors_.b_transposed(record.after(), Int(token), k));
    }
  }

  void decay_state(const Tensor& decay, const Fragment& state) const {
    Value channel = lane_idx() % 4 * 2;
    for (int tile = 0; tile < key_tiles(); ++tile) {
      Fragment pair = load(decay(channel + 8 * tile), 2);
      for (int e = 0; e < 4; ++e)
        state[4 * tile + e] = state[4 * tile + e].get() * pair[e % 2].get();
    }
  }

  const ChunkConfig& c_;
  const ChunkShape& s_;
  const ScanParameters& p_;
  LaneRows value_rows_;
  OperandLoader vectors_, matrices_;
};

}  // namespace

std::int64_t ChunkConfig::out_at() const {
  return stages * shape.record_bytes() + std::int64_t{scan_warps} * 4 * shape.tokens * kBlockRows;
}

std::int64_t ChunkConfig::handover_at() const {
  return out_at() + std::int64_t{scan_warps} * 2 * shape.tokens * kBlockRows;
}

std::int64_t ChunkConfig::scan_smem_bytes() const {
  return readers() ? handover_at() + Handover::bytes(shape, scan_warps) : out_at();
}

Traced ChunkScanPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{
      .name = op + "_scan_" + std::to_string(config.q_heads) + "x" + std::to_string(config.v_heads),
      .target = target,
      .block = {config.scan_threads(), 1, 1},
      .min_blocks_per_sm = 1};
  if (config.cluster > 1) trace_options.cluster = {config.cluster, 1, 1};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& v, const Maybe& cu_seqlens, const Maybe& state,
                     const Maybe& indices, const Tensor& out, const Maybe& final_state,
                     const Tensor& chunk_records, const Value& scale) {
    ScanParameters parameters{v,   cu_seqlens,  state,         indices,
                              out, final_state, chunk_records, scale};
    ScanKernel(config, parameters).run();
  };
  return tilewright::trace(trace_options, body, args.v, args.cu_seqlens, args.state, args.indices,
                           args.out, args.final_state, records_arg, ScalarArg{f32, {}});
}

}  // namespace tilewright

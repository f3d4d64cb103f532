// SPDX-License-Identifier: Apache-2.0
// The device side of the gated activations.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/quantize/quant_writer.h"
#include "kernels/rows/row_batch.h"
#include "kernels/rows/row_threads.h"
#include "kernels/rows/shifted_access.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/math.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kHalfLog2E = 0x1.715476p-1f;
constexpr float kLn2 = 0x1.62e430p-1f;
constexpr float kTanhLinear = 0x1.988454p+0f;  // 2 sqrt(2 / pi)
constexpr float kTanhCubic = 0x1.2444f2p-4f;   // 0.044715 kTanhLinear
// The same in two parts, of which the first is a multiple of 2^-20.
constexpr float kTanhLinearHigh = 0x1.98845p+0f, kTanhLinearLow = 0x1.9ea1b2p-23f;
constexpr float kTanhCubicLow = 0x1.49b16ap-29f;
constexpr float kTailShift = 4.0f;
// scripts/minimax.py, normal_tail and normal_tail_bf16
constexpr float kNormalTail[] = {0x1.981402p-2f, 0x1.9f5688p+0f, 0x1.5414c0p+2f, 0x1.d5f18cp+4f,
                                 0x1.e76656p+2f, 0x1.43e9a6p+8f, 0x1.67c2eap+9f, -0x1.deca28p+10f};
constexpr float kNormalTailOfBf16[] = {0x1.96c77ep-2f,  0x1.b31d70p+0f,  0x1.b1a854p+1f,
                                       0x1.b6d762p+5f,  -0x1.740b44p+7f, 0x1.24b79ep+10f,
                                       -0x1.3b2e7ap+10f};

Value cut_above(const Value& x, const Value& limit) { return min(x, limit, NanMode::propagate); }
Value cut(const Value& x, const Value& limit) {
  return max(cut_above(x, limit), -limit, NanMode::propagate);
}

struct GatedParameters {
  Tensor x;
  std::optional<Tensor> bias, row_weight, y;
  std::optional<Value> alpha, limit;  ///< where the activation has them
  std::optional<Value> count = {};    ///< rows from it on are left alone
};

/// What each expert has one of.
struct ExpertTensors {
  std::optional<Tensor> tokens, alpha, limit;
};

GatedParameters of_expert(const GatedParameters& all, const ExpertTensors& experts,
                          const Value& expert) {
  auto number = [&](const std::optional<Tensor>& each, const std::optional<Value>& option) {
    return each ? std::optional((*each)(expert).load({.read_only = true})) : option;
  };
  return {rows::one_of(all.x, expert),          all.bias,
          rows::one_of(all.row_weight, expert), rows::one_of(all.y, expert),
          number(experts.alpha, all.alpha),     number(experts.limit, all.limit),
          number(experts.tokens, std::nullopt)};
}
QuantOutputArguments<Tensor> of_expert(const QuantOutputArguments<Tensor>& all,
                                       const Value& expert) {
  return {rows::one_of(all.q, expert), all.scale ? all.scales : rows::one_of(all.scales, expert),
          all.scale, all.encode_scale, all.saturated};
}

Value is_first_of_grid() {
  const Index3 block = block_idx();
  return block.x == 0 && block.y == 0 && block.z == 0 && linear_thread_idx() == 0;
}

class GatedKernel {
 public:
  GatedKernel(const GatedPlan& plan, GatedParameters parameters)
      : plan_(plan), config_(plan.config), p_(std::move(parameters)) {}

  /// y alone. No branch stands before the loads; behind them warps outside of rows are done.
  void run() const {
    const std::vector<rows::RowShare> shares = shares_of_tile();
    std::vector<Inputs> inputs;
    inputs.reserve(shares.size());
    for (const rows::RowShare& share : shares)
      inputs.push_back(loaded(share));
    for (std::size_t j = 0; j < shares.size(); ++j) {
      auto finish = [&] { write_number(shares[j], result(inputs[j])); };
      if (shares[j].inside.is_constant()) {
        finish();
      } else {
        if_(shares[j].inside, finish);
      }
    }
  }

  /// y alone, of rows that begin anywhere.
  void run_shifted() const {
    const Value first = x_address(constant(s32, 0), 0);
    const std::int64_t row_elems = static_cast<std::int64_t>(halves().size()) * plan_.d;
    const Value end = first + row_count().to(u64) * constant(u64, row_elems * elem_bytes());
    const rows::ReadMemory memory{first, end};
    for (const rows::RowShare& share : shares_of_tile())
      if_(share.inside, [&] { write_shifted(memory, share); });
  }

  /// Codes besides y or in its place; the blocks beyond `tile_blocks` pad the scales.
  void run_quantising(const QuantWriter& writer, const Value& tile_blocks) const {
    if (config_.row) {
      quantise_row(writer);
      return;
    }
    if (plan_.quant->config.coding.layout == ScaleLayout::row) {
      quantise_tile(writer);
      return;
    }
    if_(block_idx().x < tile_blocks, [&] { quantise_tile(writer); }).else_([&] {
      Value thread = (block_idx().x - tile_blocks) * config_.threads() + linear_thread_idx();
      writer.pad(row_count(), thread);
    });
  }

 private:
  using Pair = std::pair<Fragment, Fragment>;  // gate and up in f32

  int elems() const { return config_.vector_elems(); }
  int gate_half() const { return config_.layout == GateLayout::swapped ? 1 : 0; }
  Value row_count() const { return to_value(p_.x.shape()[0].value()); }

  /// Gate and up, in this order, or the gate alone. Not of the interleaved layout.
  std::vector<int> halves() const {
    if (config_.layout == GateLayout::none) return {0};
    return {gate_half(), 1 - gate_half()};
  }
  Element x_element(const Value& row, int half, const Value& column) const {
    return config_.layout == GateLayout::none ? p_.x(row, column) : p_.x(row, half, column);
  }
  Element bias_element(int half, const Value& column) const {
    return config_.layout == GateLayout::none ? (*p_.bias)(column) : (*p_.bias)(half, column);
  }

  std::vector<rows::RowShare> shares_of_tile() const {
    std::vector<rows::RowShare> all =
        rows::row_shares(config_.tile, p_.x.shape()[0].value(), plan_.tile_columns());
    if (!p_.count) return all;
    const Value counted = is_counted(all.front().row);
    std::vector<rows::RowShare> shares;
    shares.reserve(all.size());
    for (const rows::RowShare& share : all) {
      shares.push_back(
          {share.row, share.column, share.in_rows && counted, share.inside && counted});
    }
    return shares;
  }

  // ---- Rows that begin anywhere: whole accesses by words, the first and the last by elements ----

  std::int64_t elem_bytes() const { return bytes(plan_.x_arg.type); }
  Value x_address(const Value& row, int half) const {
    return x_element(row, half, constant(s32, 0)).address();
  }

  void write_shifted(const rows::ReadMemory& memory, const rows::RowShare& share) const {
    const Type type = plan_.x_arg.type;
    const Value y_row = (*p_.y)(share.row, 0).address();
    const Value column = share.column.to(s32) - rows::elems_before(type, y_row);
    const auto d = static_cast<int>(plan_.d);
    const Value whole = column >= 0 && column <= d - elems();
    const Value offset = (column.to(s64) * elem_bytes()).bitcast(u64);
    std::vector<Value> addresses;
    for (const int half : halves())
      addresses.push_back(x_address(share.row, half) + offset);
    const Value words =
        whole && memory.holds_words(addresses.front()) && memory.holds_words(addresses.back());
    Inputs inputs;
    for (const Value& address : addresses)
      inputs.x.push_back(rows::load_shifted(type, address, words));
    const auto inside = [&](int e) { return column + e >= 0 && column + e < d; };
    if_(!words, [&] {
      for (std::size_t i = 0; i < addresses.size(); ++i) {
        const int half = halves()[i];
        for (int e = 0; e < elems(); ++e)
          inputs.x[i][e] = load_if(inside(e), x_element(share.row, half, column + e), 1)[0].get();
      }
    });
    const Fragment z = result(inputs).to(type);
    if_(whole, [&] { store(rows::aligned_access(type, y_row + offset), z); }).else_([&] {
      for (int e = 0; e < elems(); ++e)
        if_(inside(e), [&] { (*p_.y)(share.row, column + e) = z[e].get(); });
    });
  }

  void write_number(const rows::RowShare& share, const Fragment& z) const {
    store((*p_.y)(share.row, share.column), z.to(p_.y->type()));
  }

  Value is_counted(const Value& row) const { return row < p_.count->to(row.type()); }

  /// Where rows may be left out: not in warps without any other. A row of several warps, which meet
  /// at barriers, is all that its block has.
  template <class Body>
  void where_any(const Value& active, Body&& body) const {
    if (!p_.count) {
      body();
      return;
    }
    constexpr int kWarp = 32;
    const bool whole_block = config_.row && config_.row->threads_per_row > kWarp;
    if_(whole_block ? is_counted(block_idx().x) : vote_any(active), body);
  }

  void quantise_tile(const QuantWriter& writer) const {
    const std::vector<rows::RowShare> shares = shares_of_tile();
    where_any(shares.front().in_rows, [&] {
      quantise(writer, shares, config_.tile.threads_n, [](const RowPart&) { return std::nullopt; });
    });
  }

  void quantise_row(const QuantWriter& writer) const {
    const rows::RowThreads threads(*config_.row);
    Value row = threads.row(row_count().type());
    const Value counted = p_.count ? is_counted(row) : constant(pred, true);
    if (config_.row->looped) {
      where_any(counted, [&] { quantise_long_row(writer, threads, row); });
      return;
    }
    Value active = row < row_count() && counted;
    where_any(active, [&] { quantise_held_row(writer, threads, row, active); });
  }

  void quantise_held_row(const QuantWriter& writer, const rows::RowThreads& threads,
                         const Value& row, const Value& active) const {
    std::vector<rows::RowShare> shares;
    shares.reserve(static_cast<std::size_t>(config_.row->vectors));
    for (int j = 0; j < config_.row->vectors; ++j)
      shares.push_back({row, threads.column(j), active, active && threads.inside(j)});
    quantise(writer, shares, config_.row->threads_per_row, [&](const RowPart& part) {
      return std::optional(threads.largest(writer.largest_of_thread(part)));
    });
  }

  /// A row too long for registers is computed twice: for its scale, and for its codes.
  void quantise_long_row(const QuantWriter& writer, const rows::RowThreads& threads,
                         const Value& row) const {
    const int lanes = config_.row->threads_per_row;
    Var largest(f32, 0.0f);
    for_shares(threads, row, [&](const std::vector<rows::RowShare>& shares) {
      const RowPart part = part_of(writer, shares, lanes, Numbers::unwritten);
      largest = larger(largest, writer.largest_of_thread(part));
    });
    std::optional<Value> of_row(threads.largest(largest));
    for_shares(threads, row, [&](const std::vector<rows::RowShare>& shares) {
      quantise(writer, shares, lanes, [&](const RowPart&) { return of_row; });
    });
  }

  /// Some accesses of a row at a time, all threads as often.
  template <class Body>
  void for_shares(const rows::RowThreads& threads, const Value& row, Body&& body) const {
    constexpr int kAtOnce = 2;
    const int turn = config_.row->threads_per_row * elems() * kAtOnce;
    const auto d = static_cast<int>(plan_.d);
    for_(0, d, turn, [&](const Value& first) {
      std::vector<rows::RowShare> shares;
      for (int j = 0; j < kAtOnce; ++j) {
        Value column = first + threads.column(j);
        shares.push_back({row, column, constant(pred, true), column < d});
      }
      body(shares);
    });
  }

  template <class LargestOfRow>
  void quantise(const QuantWriter& writer, const std::vector<rows::RowShare>& shares, int lanes,
                LargestOfRow&& largest_of_row) const {
    const RowPart part = part_of(writer, shares, lanes, Numbers::written);
    writer.write(part, largest_of_row(part));
  }

  /// Whether y, if there is one, is written.
  enum class Numbers : std::uint8_t { written, unwritten };
  RowPart part_of(const QuantWriter& writer, const std::vector<rows::RowShare>& shares, int lanes,
                  Numbers numbers) const {
    RowPart part{shares.front().row, shares.front().column, {}, {}, lanes};
    for (const rows::RowShare& share : shares) {
      const Fragment z = result(loaded(share));
      if (p_.y && numbers == Numbers::written)
        store_if(share.inside, (*p_.y)(share.row, share.column), z.to(p_.y->type()));
      part.inside.push_back(share.inside);
      part.numbers.push_back(writer.rounded(z));
    }
    return part;
  }

  /// What a thread reads for an access to y: gate and up as they lie in memory, and their biases.
  struct Inputs {
    std::vector<Fragment> x, bias;
    std::optional<Value> weight;
  };
  Inputs loaded(const rows::RowShare& at) const {
    Inputs inputs;
    auto load_x = [&](const Element& first, int count) {
      inputs.x.push_back(load_if(at.inside, first, count));
    };
    auto load_bias = [&](const Element& first, int count) {
      inputs.bias.push_back(load_if(at.inside, first, count));
    };
    if (config_.layout == GateLayout::interleaved) {
      load_x(p_.x(at.row, at.column * 2), 2 * elems());
      if (p_.bias) load_bias((*p_.bias)(at.column * 2), 2 * elems());
    } else {
      for (const int half : halves())
        load_x(x_element(at.row, half, at.column), elems());
      for (const int half : halves())
        if (p_.bias) load_bias(bias_element(half, at.column), elems());
    }
    if (p_.row_weight)
      inputs.weight.emplace(load_if(at.inside, (*p_.row_weight)(at.row), 1)[0].get());
    return inputs;
  }

  /// In f32.
  Fragment result(const Inputs& inputs) const {
    auto [gate, up] = pair(inputs.x);
    if (!inputs.bias.empty()) {
      auto [gate_bias, up_bias] = pair(inputs.bias);
      gate = gate + gate_bias;
      up = up + up_bias;
    }
    Fragment z = zip_map(gate, up, [&](const Value& g, const Value& u) { return gated(g, u); });
    return inputs.weight ? z * *inputs.weight : z;
  }

  Pair pair(const std::vector<Fragment>& read) const {
    if (config_.layout == GateLayout::interleaved) return alternate(read.front());
    const Fragment gate = read.front().to(f32);
    return {gate, read.size() == 1 ? gate : read.back().to(f32)};
  }

  Pair alternate(const Fragment& both) const {
    Fragment wide = both.to(f32);
    Fragment gate(f32, elems());
    Fragment up(f32, elems());
    for (int i = 0; i < elems(); ++i) {
      gate[i] = wide[2 * i].get();
      up[i] = wide[2 * i + 1].get();
    }
    return {gate, up};
  }

  Value gated(const Value& gate, const Value& up) const {
    if (config_.activation == Activation::swigluoai) {
      Value g = cut_above(gate, *p_.limit);
      Value argument = g * *p_.alpha;
      return (cut(up, *p_.limit) + 1.0f) *
             rounded(with_sigmoid(g, argument, [&] { return fma(g, *p_.alpha, -argument); }));
    }
    Value g = config_.clamp_gate == ClampGate::before ? cut_above(gate, *p_.limit) : gate;
    bool cut_after = config_.clamp_gate == ClampGate::after;
    Value act = rounded(cut_after ? cut_above(activated(g), *p_.limit) : activated(g));
    if (config_.layout == GateLayout::none) return act;
    return act * (config_.clamp_gate == ClampGate::none ? up : cut(up, *p_.limit));
  }

  Value rounded(const Value& act) const {
    return config_.round_act ? act.to(plan_.x_arg.type).to(f32) : act;
  }

  Value activated(const Value& g) const {
    switch (config_.activation) {
      case Activation::gelu:
        return gelu(g);
      case Activation::gelu_tanh:
        return gelu_tanh(g);
      case Activation::relu2: {
        Value positive = relu(g);
        return positive * positive;
      }
      case Activation::silu:
      case Activation::swigluoai:
        break;
    }
    return plan_.x_arg.type == f32 ? g * sigmoid(g) : with_approximate_sigmoid(g, g);
  }

  /// g times the sigmoid of x, where the output has 16 bits: the exponent's rounding is |x| 2^-24
  /// of the result. Powers below 2^-126 may be flushed, for they vanish beside 1. The reciprocal is
  /// four times the sigmoid, which never is below 2^-126: ptxas would guard against that by 6
  /// instructions.
  static Value with_approximate_sigmoid(const Value& g, const Value& x) {
    constexpr float kPart = 0.25f;
    const Value power = power_of_two(x * -kLog2E);
    const Value of_part = fma(power, kPart, constant(f32, kPart));
    return g * kPart * inline_ptx("rcp.approx.ftz.f32 $0, $1;", {f32}, {of_part}).front();
  }

  /// g times the sigmoid of x and the rest that x lacks, for the exponential turns an error of its
  /// argument into a relative one. Of no consequence in 16 bits. Beyond 128 sigmoids are 0 or 1.
  template <class Rest>
  Value with_sigmoid(const Value& g, const Value& x, Rest&& rest) const {
    if (plan_.x_arg.type != f32) return with_approximate_sigmoid(g, x);
    const Value near = sigmoid(x);
    const Value lost = select(abs(x) < 128.0f, rest(), constant(f32, 0.0f));
    return g * fma(lost * near, constant(f32, 1.0f) - near, near);
  }

  /// (1 + tanh(z)) / 2 = sigmoid(2 z).
  Value gelu_tanh(const Value& g) const {
    if (plan_.x_arg.type != f32)
      return with_approximate_sigmoid(g, g * fma(g * g, kTanhCubic, kTanhLinear));
    Value square = g * g;
    Value slope = fma(square, kTanhCubic, kTanhLinearHigh);
    Value argument = g * slope;
    return with_sigmoid(g, argument, [&] {
      Value of_square = fma(g, g, -square);
      Value of_slope = fma(square, kTanhCubic, constant(f32, kTanhLinearHigh) - slope);
      Value low = fma(square, kTanhCubicLow, constant(f32, kTanhLinearLow));
      return fma(g, fma(of_square, kTanhCubic, of_slope) + low, fma(g, slope, -argument));
    });
  }

  /// g times the normal distribution function, which would cancel in its lower tail: that is
  /// 2^(-g^2 log2(e) / 2) v p(v) with v = 1 / (|g| + 4).
  Value gelu(const Value& g) const {
    const Value tail = plan_.x_arg.type == bf16 ? tail_of_bf16(g) : tail_of(g);
    return g * abs(select(g < 0.0f, 0.0f, 1.0f) - tail);
  }

  /// Within 2^-21. The power's rounded argument is made good; beyond 16 it is 0 anyway.
  Value tail_of(const Value& g) const {
    Value a = min(abs(g), 16.0f, NanMode::propagate);
    Value square = a * a;
    Value power = square * -kHalfLog2E;
    Value lost = fma(square, -kHalfLog2E, -power);
    bool squares_exactly =
        plan_.x_arg.type == f16 && !p_.bias && config_.clamp_gate == ClampGate::none;
    Value rest = squares_exactly ? lost : fma(fma(a, a, -square), -kHalfLog2E, lost);
    Value v = inverse_of_shifted(a);
    Value p = polynomial(v, kNormalTail);
    return power_of_two(power) * v * fma(p, rest * kLn2, p);
  }

  /// Within 2^-17.5: up to 2^-16 a result stays within 2^-8 of its value when it is rounded to
  /// bf16, as the middle of two numbers is 2^-8 or more from a power of two.
  Value tail_of_bf16(const Value& g) const {
    Value v = inverse_of_shifted(abs(g));
    return power_of_two(g * g * -kHalfLog2E) * v * polynomial(v, kNormalTailOfBf16);
  }

  /// Of 4 and more: nothing to flush, and ptxas would guard subnormal operands by 5 instructions.
  static Value inverse_of_shifted(const Value& magnitude) {
    return inline_ptx("rcp.approx.ftz.f32 $0, $1;", {f32}, {magnitude + kTailShift}).front();
  }

  /// Flushed below 2^-126, as ptxas would guard against it by 3 instructions.
  static Value power_of_two(const Value& exponent) {
    return inline_ptx("ex2.approx.ftz.f32 $0, $1;", {f32}, {exponent}).front();
  }

  static Value polynomial(const Value& x, std::span<const float> coefficients) {
    if (coefficients.size() == 1) return constant(f32, coefficients.front());
    return fma(polynomial(x, coefficients.subspan(1)), x, coefficients.front());
  }

  const GatedPlan& plan_;
  const GatedConfig& config_;
  GatedParameters p_;
};

}  // namespace

Traced GatedPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{
      .name = std::string(operator_name(config.activation)) + "_" + std::string(name(x_arg.type)) +
              (quant ? "_" + std::string(tilewright::name(quant->config.coding.format)) : ""),
      .target = target,
      .block = {config.threads(), 1, 1}};
  using Maybe = std::optional<Tensor>;
  using MaybeValue = std::optional<Value>;
  auto body = [this](const Tensor& x, const Maybe& bias, const Maybe& row_weight, const Maybe& y,
                     const MaybeValue& alpha, const MaybeValue& limit, const Maybe& q,
                     const Maybe& scales, const Maybe& scale, const Maybe& encode_scale,
                     const MaybeValue& floor, const MaybeValue& block_count, const Maybe& saturated,
                     const Maybe& tokens, const Maybe& alphas, const Maybe& limits) {
    const MaybeValue expert = config.experts ? MaybeValue(block_idx().z) : std::nullopt;
    const GatedParameters all{x, bias, row_weight, y, alpha, limit};
    const GatedKernel kernel(*this,
                             expert ? of_expert(all, {tokens, alphas, limits}, *expert) : all);
    if (quant) {
      const QuantOutputArguments<Tensor> codes_of_all{q, scales, scale, encode_scale, saturated};
      QuantWriter writer(quant->config, expert ? of_expert(codes_of_all, *expert) : codes_of_all,
                         *floor);
      if (expert) writer.store_input(is_first_of_grid());
      kernel.run_quantising(writer, *block_count);
    } else if (config.shifted) {
      kernel.run_shifted();
    } else {
      kernel.run();
    }
  };
  const std::optional<ScalarArg> real = ScalarArg{f32, {}};
  const QuantTraceArgs codes = trace_args(quant);
  return tilewright::trace(trace_options, body, x_arg, bias_arg, weight_arg, y_arg,
                           takes_alpha() ? real : std::nullopt, takes_limit() ? real : std::nullopt,
                           codes.tensors.q, codes.tensors.scales, codes.tensors.scale,
                           codes.tensors.encode_scale, codes.floor, codes.row_blocks,
                           codes.tensors.saturated, tokens_arg, alpha_arg, limit_arg);
}

}  // namespace tilewright

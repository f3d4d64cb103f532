// SPDX-License-Identifier: Apache-2.0
// The device side of norms over rows.
#include "kernels/quantize/quant_writer.h"
#include "kernels/rows/row_norm.h"
#include "kernels/rows/row_threads.h"
#include "tilewright/control.h"
#include "tilewright/loaded_together.h"
#include "tilewright/thread.h"

#include <array>
#include <optional>

namespace tilewright {
namespace {

using RowNormParameters = RowNormArguments<Tensor>;

/// [A, B, H] as rows that a number finds: B is the inner mode of the first one.
Tensor in_rows(const Tensor& tensor) {
  if (tensor.layout().rank() != 3) return tensor;
  return tensor.with_layout(group(select(tensor.layout(), std::array{1, 0, 2}), 0, 2));
}
std::optional<Tensor> in_rows(const std::optional<Tensor>& tensor) {
  return tensor ? std::optional(in_rows(*tensor)) : std::nullopt;
}

class RowNormKernel {
 public:
  RowNormKernel(const RowNormConfig& config, RowNormParameters tensors, const Value& eps,
                const Value& weight_bias)
      : config_(config),
        t_(std::move(tensors)),
        rows_(to_value(size(t_.x.shape()[0]))),
        eps_(eps),
        weight_bias_(weight_bias),
        threads_(config.row),
        own_(threads_.of_part()) {}

  /// Codes besides y or in its place; the blocks beyond `row_blocks` pad the scales.
  void run_quantising(const QuantOutputPlan& plan, const Value& floor, const Value& row_blocks) {
    writer_.emplace(plan.config, t_.quant, floor);
    if (plan.config.coding.layout == ScaleLayout::row) {
      run_early();
      return;
    }
    const auto pad = [&] {
      writer_->pad(rows_,
                   (block_idx().x - row_blocks) * config_.row.threads() + linear_thread_idx());
    };
    if_(block_idx().x < row_blocks, [&] { run_early(); }).else_([&] {
      if (config_.row.parts == 1) return pad();
      if_(block_idx().y == 0, pad);
    });
  }

  void run() const {
    Value row = threads_.row(rows_.type());  // s64 beyond 2^30 rows
    if (config_.row.looped) {
      if_(exists(row), [&] { looped_row(row); });
      return;
    }
    Operands early;
    if (!is_late()) early = load_operands();  // the reduction does not need them
    if (config_.row.turns == 1) {
      held_row(row, early);
      return;
    }
    for_(0, config_.row.turns, 1, [&](const Value& turn) {
      Value mine = row + turn.to(rows_.type()) * config_.row.rows_per_block;
      held_row(mine, early);
    });
  }

 private:
  void run_early() {
    if (config_.weights == WeightLoads::early) writer_->load_input();
    run();
  }

  /// What the rows have in common.
  struct Operands {
    rows::Row weights, biases;
  };
  bool is_late() const { return config_.weights == WeightLoads::late; }
  Operands load_operands() const {
    Operands loaded;
    if (t_.w) loaded.weights = own_.load_vector(*t_.w);
    if (t_.bias) loaded.biases = own_.load_vector(*t_.bias);
    return loaded;
  }

  /// Whether the row is one of the tensor's: always with one row a block, for the grid has as many.
  /// Loads without a predicate start a decode row's weights together with the row (0.3 us less for
  /// one row of 4096 bf16 on an H200).
  Value exists(const Value& row) const {
    return config_.row.rows_of_block() == 1 ? always() : row < rows_;
  }

  /// What the statistics found: a row's elements become (z - mean) * factor.
  struct Moments {
    std::optional<Value> mean;
    Value factor;
  };
  bool centred() const { return config_.statistics == Statistics::mean_and_variance; }
  float one_over_mean_elems() const { return 1.0f / static_cast<float>(config_.partial); }

  // ---- Rows held in registers ----

  void held_row(const Value& row, const Operands& early) const {
    Value active = exists(row);
    const auto [all, part] = load_sums(row, active, early);
    const rows::Row& z = part;  // of what this block writes
    if (t_.residual_out) if_(active, [&] { store_sums(row, z); });
    Moments moments = config_.merged ? merged_moments(all) : moments_of(all);
    if (writer_) {
      const Operands operands = is_late() ? load_operands() : early;
      rows::Row y;
      for (int j = 0; j < static_cast<int>(z.size()); ++j)
        y.push_back(normalised(z, j, operands, moments));
      if_(active, [&] {
        for (int j = 0; j < static_cast<int>(y.size()); ++j)
          store_number(row, j, y[static_cast<std::size_t>(j)]);
        store_factor(row, moments);
      });
      write_codes(row, active, y);
      return;
    }
    if_(active, [&] {
      const Operands operands = is_late() ? load_operands() : early;
      for (int j = 0; j < static_cast<int>(z.size()); ++j)
        store_number(row, j, normalised(z, j, operands, moments));
      store_factor(row, moments);
    });
  }

  /// Ahead of the reduction, under whose latency the stores run: 0.1 us less for one row of 7168
  /// bf16 on an H200.
  void store_sums(const Value& row, const rows::Row& z) const {
    for (std::size_t j = 0; j < z.size(); ++j) {
      own_.store_access(*t_.residual_out, row, static_cast<int>(j),
                        z[j].to(t_.residual_out->type()));
    }
  }

  void store_number(const Value& row, int j, const Fragment& y) const {
    if (t_.y) own_.store_access(*t_.y, row, j, y.to(t_.y->type()));
  }

  /// Every thread of the block takes part.
  void write_codes(const Value& row, const Value& active, const rows::Row& y) const {
    RowPart part{row, own_.column(0), {}, {}, config_.row.threads_per_row};
    for (std::size_t j = 0; j < y.size(); ++j) {
      part.inside.push_back(active && own_.inside(static_cast<int>(j)));
      part.numbers.push_back(writer_->rounded(y[j]));
    }
    std::optional<Value> largest;
    if (writer_->needs_largest_of_row())
      largest.emplace(threads_.largest(writer_->largest_of_thread(part)));
    writer_->write(part, largest);
  }

  /// z of the thread's accesses, and of those that it writes: a part is loaded again, from the
  /// cache, for registers have no run-time numbers.
  struct Held {
    rows::Row all, part;
  };

  /// All loads are in flight before the first sum.
  Held load_sums(const Value& row, const Value& active, const Operands& operands) const {
    const bool shared = config_.row.parts > 1;
    const Addends all = load_addends(threads_, row, active);
    const Addends part = shared ? load_addends(own_, row, active) : Addends{};
    if (config_.weights == WeightLoads::early) {
      load_before(all.x, {part.x, all.residual, all.extra, part.residual, part.extra}, operands);
    }
    const rows::Row z = sums(all);
    return {z, shared ? sums(part) : z};
  }

  /// What z is the sum of; empty where there is none.
  struct Addends {
    rows::Row x, residual, extra;
  };
  Addends load_addends(const rows::RowThreads& threads, const Value& row,
                       const Value& active) const {
    Addends loaded{threads.load_row(t_.x, row, active), {}, {}};
    if (t_.residual) loaded.residual = threads.load_row(*t_.residual, row, active);
    if (t_.extra) loaded.extra = threads.load_row(*t_.extra, row, active);
    return loaded;
  }

  rows::Row sums(const Addends& addends) const {
    if (!t_.residual) return addends.x;
    rows::Row z;
    for (std::size_t i = 0; i < addends.x.size(); ++i) {
      std::optional<Fragment> third;
      if (t_.extra) third.emplace(addends.extra[i]);
      z.push_back(sum(addends.x[i], addends.residual[i], third));
    }
    return z;
  }

  void load_before(const rows::Row& x, std::initializer_list<rows::Row> addends,
                   const Operands& operands) const {
    rows::Row others;
    auto add = [&](const rows::Row& row) { others.insert(others.end(), row.begin(), row.end()); };
    for (const rows::Row& addend : addends)
      add(addend);
    add(operands.weights);
    add(operands.biases);
    if (writer_ && writer_->input()) others.push_back(*writer_->input());
    loaded_together(x, others);
  }

  /// Two numbers of one 16-bit type are added as pairs where the sum is rounded to it: f32 has more
  /// than twice its digits and two, so that rounding to f32 first gives the same bits (Figueroa,
  /// When is double rounding innocuous?).
  Fragment sum(const Fragment& x, const Fragment& residual,
               const std::optional<Fragment>& extra) const {
    const bool alike = x.type() == residual.type() && bits(x.type()) == 16 && x.size() % 2 == 0;
    if (alike && !extra && config_.rounding == SumRounding::round_first) {
      const Type pair = x.type() == bf16 ? bf16x2 : f16x2;
      return (x.recast(pair) + residual.recast(pair)).recast(x.type());
    }
    Fragment z = x.to(f32) + residual.to(f32);
    if (extra) z = z + extra->to(f32);
    return config_.rounding == SumRounding::keep_f32 ? z : z.to(t_.residual->type());
  }

  // What elements add to a sum.
  auto add_element() const {
    return [this](Var& sum, const Value& element, const Value& column) {
      sum = sum + under_mean(element, column);
    };
  }
  auto add_square() const {
    return [this](Var& sum, const Value& element, const Value& column) {
      Value counted = under_mean(element, column);
      sum = fma(counted, counted, sum);
    };
  }
  auto add_distance(const Value& mean) const {
    return [this, mean](Var& sum, const Value& element, const Value& column) {
      sum = sum + under_mean(element - mean, column);
    };
  }
  auto add_square_distance(const Value& mean) const {
    return [this, mean](Var& sum, const Value& element, const Value& column) {
      Value distance = under_mean(element - mean, column);
      sum = fma(distance, distance, sum);
    };
  }

  Moments moments_of(const rows::Row& z) const {
    if (!centred()) {
      return {std::nullopt, factor_of(threads_.sum(sums_of(z, add_square())))};
    }
    Value mean = threads_.sum(sums_of(z, add_element())) * one_over_mean_elems();
    // Elements of accesses beyond the row are 0, which is no distance.
    const auto distance_of = [&](const Value& element, const Value& column) {
      return select(column < static_cast<int>(config_.partial), element - mean, 0.0f);
    };
    std::vector<Value> squares =
        sums_of(z, [&](Var& sum, const Value& element, const Value& column) {
          Value distance = distance_of(element, column);
          sum = fma(distance, distance, sum);
        });
    const Value sum = threads_.sum(squares);
    if (!config_.corrected) return {mean, factor_of(sum)};
    const Value distances =
        threads_.sum(sums_of(z, [&](Var& total, const Value& element, const Value& column) {
          total = total + distance_of(element, column);
        }));
    return {mean, factor_of(corrected(sum, distances))};
  }

  /// Square distances from a mean that is rounded: its own error is what the distances are together
  /// (Chan, Golub and LeVeque, The American Statistician 37, 1983).
  Value corrected(const Value& squares, const Value& distances) const {
    return fma(distances * -one_over_mean_elems(), distances, squares);
  }

  /// Each access's elements around a mean of its own, then merged.
  Moments merged_moments(const rows::Row& z) const {
    std::vector<rows::RowThreads::Spread> spreads;
    const std::vector<Value> totals = sums_of(z, add_element());
    for (std::size_t j = 0; j < z.size(); ++j) {
      Value mean = totals[j] * (1.0f / static_cast<float>(config_.row.vector_elems));
      Var squares(f32, 0.0f);
      add_access(squares, z[j], threads_.column(static_cast<int>(j)), add_square_distance(mean));
      spreads.push_back({mean, squares});
    }
    const rows::RowThreads::Spread all = threads_.merge(spreads);
    return {all.mean, factor_of(all.squares)};
  }

  /// Of each access of the thread: its elements in order.
  template <class Accumulate>
  std::vector<Value> sums_of(const rows::Row& z, Accumulate&& accumulate) const {
    std::vector<Value> sums;
    for (int j = 0; j < config_.row.vectors; ++j) {
      Var sum(f32, 0.0f);
      add_access(sum, z[static_cast<std::size_t>(j)], threads_.column(j), accumulate);
      sums.emplace_back(sum);
    }
    return sums;
  }

  template <class Accumulate>
  void add_access(Var& sum, const Fragment& access, const Value& column,
                  Accumulate&& accumulate) const {
    Fragment wide = access.to(f32);
    for (int i = 0; i < wide.size(); ++i)
      accumulate(sum, wide[i].get(), column + i);
  }

  Value under_mean(const Value& element, const Value& column) const {
    if (config_.partial == config_.row.h) return element;
    return select(column < static_cast<int>(config_.partial), element, 0.0f);
  }

  Value factor_of(const Value& squares) const {
    return rsqrt_approx(fma(squares, one_over_mean_elems(), eps_));
  }

  Fragment normalised(const rows::Row& z, int j, const Operands& operands,
                      const Moments& moments) const {
    const auto i = static_cast<std::size_t>(j);
    std::optional<Fragment> weight, bias;
    if (t_.w) weight.emplace(operands.weights[i]);
    if (t_.bias) bias.emplace(operands.biases[i]);
    return normalised(z[i], weight, bias, moments);
  }

  /// In f32.
  Fragment normalised(const Fragment& z, const std::optional<Fragment>& weight,
                      const std::optional<Fragment>& bias, const Moments& moments) const {
    Fragment product = z.to(f32);
    if (moments.mean) product = product + -*moments.mean;
    product = product * moments.factor;
    if (config_.order == WeightOrder::after_rounding) product = product.to(t_.x.type()).to(f32);
    if (weight) {
      Fragment factor = weight->to(f32);
      if (config_.has_weight_bias) factor = factor + weight_bias_;
      if (bias) return product_and_sum(product, factor, bias->to(f32));
      product = product * factor;
    } else if (config_.has_weight_bias) {
      product = product * (weight_bias_ + 1.0f);
    }
    if (bias) product = product + bias->to(f32);
    return product;
  }

  static Fragment product_and_sum(const Fragment& a, const Fragment& b, const Fragment& c) {
    Fragment result(f32, a.size());
    for (int i = 0; i < a.size(); ++i)
      result[i] = fma(a[i].get(), b[i].get(), c[i].get());
    return result;
  }

  void store_factor(const Value& row, const Moments& moments) const {
    if (t_.rstd) if_(own_.lane() == 0, [&] { (*t_.rstd)(row) = moments.factor; });
  }

  // ---- Rows too long for registers: read again for every pass, written in the last ----

  void looped_row(const Value& row) const {
    Moments moments = looped_moments(row);
    if (writer_) {
      write_looped_codes(row, moments);
    } else {
      for_columns([&](const Value& column) { write_looped(row, column, always(), moments); });
    }
    store_factor(row, moments);
  }

  /// y in f32.
  Fragment write_looped(const Value& row, const Value& column, const Value& inside,
                        const Moments& moments) const {
    Fragment z = load_sum(row, column, inside);
    Fragment y = looped_normalised(z, column, inside, moments);
    if (t_.residual_out) {
      store_if(inside, (*t_.residual_out)(row, column), z.to(t_.residual_out->type()));
    }
    if (t_.y) store_if(inside, (*t_.y)(row, column), y.to(t_.y->type()));
    return y;
  }

  Fragment looped_normalised(const Fragment& z, const Value& column, const Value& inside,
                             const Moments& moments) const {
    int v = config_.row.vector_elems;
    std::optional<Fragment> weight, bias;
    if (t_.w) weight.emplace(load_if(inside, (*t_.w)(column), v));
    if (t_.bias) bias.emplace(load_if(inside, (*t_.bias)(column), v));
    return normalised(z, weight, bias, moments);
  }

  /// The last pass with codes: all threads of a warp have as many turns.
  void write_looped_codes(const Value& row, const Moments& moments) const {
    std::optional<Value> largest;
    if (writer_->needs_largest_of_row()) largest.emplace(looped_largest(row, moments));
    const int step = config_.row.threads_per_row * config_.row.vector_elems;
    for_(0, static_cast<int>(config_.row.h), step, [&](const Value& first) {
      Value column = first + threads_.lane() * config_.row.vector_elems;
      Value inside = column < static_cast<int>(config_.row.h);
      const Fragment y = write_looped(row, column, inside, moments);
      writer_->write({row, column, {inside}, {writer_->rounded(y)}, config_.row.threads_per_row},
                     largest);
    });
  }

  Value looped_largest(const Value& row, const Moments& moments) const {
    Var largest(f32, 0.0f);
    for_columns([&](const Value& column) {
      Fragment z = load_sum(row, column, always());
      const Fragment y = looped_normalised(z, column, always(), moments);
      largest = larger(largest, largest_magnitude(writer_->rounded(y)));
    });
    return threads_.largest(largest);
  }

  static Value always() { return constant(pred, true); }

  template <class Body>
  void for_columns(Body&& body) const {
    int step = config_.row.threads_per_row * config_.row.vector_elems;
    for_(threads_.lane() * config_.row.vector_elems, static_cast<int>(config_.row.h), step, body);
  }

  Fragment load_sum(const Value& row, const Value& column, const Value& inside) const {
    int v = config_.row.vector_elems;
    Fragment x = load_if(inside, t_.x(row, column), v);
    if (!t_.residual) return x;
    Fragment residual = load_if(inside, (*t_.residual)(row, column), v);
    std::optional<Fragment> extra;
    if (t_.extra) extra.emplace(load_if(inside, (*t_.extra)(row, column), v));
    return sum(x, residual, extra);
  }

  template <class Accumulate>
  Value looped_sum(const Value& row, Accumulate&& accumulate) const {
    rows::LongSum total;
    for_columns([&](const Value& column) {
      Var part(f32, 0.0f);
      add_access(part, load_sum(row, column, always()), column, accumulate);
      total.add(part);
    });
    return threads_.sum({total.total()});
  }

  Moments looped_moments(const Value& row) const {
    if (!centred()) return {std::nullopt, factor_of(looped_sum(row, add_square()))};
    Value mean = looped_sum(row, add_element()) * one_over_mean_elems();
    const Value squares = looped_sum(row, add_square_distance(mean));
    if (!config_.corrected) return {mean, factor_of(squares)};
    return {mean, factor_of(corrected(squares, looped_sum(row, add_distance(mean))))};
  }

  RowNormConfig config_;
  RowNormParameters t_;
  Value rows_, eps_, weight_bias_;
  rows::RowThreads threads_, own_;          ///< of the sums; of weights, biases and y
  std::optional<QuantWriter> writer_ = {};  ///< absent: no codes
};

}  // namespace

Traced RowNormPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{
      .name = op + "_" + std::string(name(tensors.x.type)) + "_" + std::to_string(config.row.h) +
              (config.rounding == SumRounding::keep_f32 ? "_keep_f32" : "") +
              (config.order == WeightOrder::after_rounding ? "_cast_before_weight" : "") +
              (quant ? "_" + std::string(tilewright::name(quant->config.coding.format)) : ""),
      .target = target,
      .block = {config.row.threads(), 1, 1},
      .min_blocks_per_sm = config.resident};
  using Maybe = std::optional<Tensor>;
  using MaybeValue = std::optional<Value>;
  auto body = [this](const Tensor& x, const Value& eps, const Maybe& residual, const Maybe& w,
                     const Maybe& residual_out, const Maybe& y, const Maybe& bias,
                     const Maybe& extra, const Maybe& rstd, const Value& weight_bias,
                     const Maybe& q, const Maybe& scales, const Maybe& scale,
                     const Maybe& encode_scale, const MaybeValue& floor,
                     const MaybeValue& row_block_count, const Maybe& saturated) {
    RowNormKernel kernel(config,
                         {in_rows(x),
                          w,
                          in_rows(y),
                          rstd,
                          bias,
                          in_rows(residual),
                          in_rows(extra),
                          in_rows(residual_out),
                          {q, scales, scale, encode_scale, saturated}},
                         eps, weight_bias);
    if (quant) {
      kernel.run_quantising(*quant, *floor, *row_block_count);
    } else {
      kernel.run();
    }
  };
  const ScalarArg real{f32, {}};
  const QuantTraceArgs codes = trace_args(quant);
  return tilewright::trace(trace_options, body, args.x, real, args.residual, args.w,
                           args.residual_out, args.y, args.bias, args.extra, args.rstd, real,
                           codes.tensors.q, codes.tensors.scales, codes.tensors.scale,
                           codes.tensors.encode_scale, codes.floor, codes.row_blocks,
                           codes.tensors.saturated);
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// embedding with a norm: the threads of a row gather it and share its sum of squares as rms_norm's
// do.
#include "kernels/row_gather/gathered_row.h"
#include "kernels/rows/row_threads.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/loaded_together.h"
#include "tilewright/thread.h"

#include <utility>

namespace tilewright {
namespace {

/// The rows of one token.
struct Token {
  Value row;     // of the outputs
  Value active;  // there is such a row
  rows::IndexedRow from;
  Value exists;  // active, and in the table
  std::vector<rows::IndexedRow> added;
  std::optional<Value> factor;  // of row_scale
};

/// An access of a token's rows, as it is stored.
struct TokenPart {
  Fragment row;
  std::vector<Fragment> added;
};

class GatherNormKernel {
 public:
  GatherNormKernel(const RowGatherPlan& plan, const GatherParameters& parameters,
                   const GatherNormParameters& norm)
      : plan_(plan),
        config_(*plan.config.norm),
        p_(parameters),
        n_(norm),
        row_count_(to_value(parameters.out.shape()[0].value())),
        threads_(config_.row) {}

  void operator()() const {
    const Value row = threads_.row(row_count_.type());  // s64 beyond 2^30 rows
    if (config_.row.looped) {
      if_(is_active(row), [&] { looped_row(row); });
      return;
    }
    rows::Row weights;
    if (n_.w && !is_late()) weights = threads_.load_vector(*n_.w);
    if (config_.row.turns == 1) {
      held_row(row, weights);
      return;
    }
    for_(0, config_.row.turns, 1, [&](const Value& turn) {
      held_row(row + turn.to(row_count_.type()) * config_.row.rows_per_block, weights);
    });
  }

 private:
  bool is_late() const { return config_.weights == WeightLoads::late; }
  int vector_elems() const { return config_.row.vector_elems; }
  static Value always() { return constant(pred, true); }
  /// With one row a block the grid has as many.
  Value is_active(const Value& row) const {
    return config_.row.rows_of_block() == 1 ? always() : row < row_count_;
  }

  // ---- What a token has in the tables ----

  /// All indices are on their way before the first is used.
  Token token_of(const Value& row, const Value& active) const {
    std::vector<Fragment> indices;
    for (const AddedRows<Tensor>& each : p_.added)
      indices.push_back(load_if(active, each.indices(row), 1));
    const rows::IndexedRow from = row_of_token(p_, load_if(active, p_.ids(row), 1)[0]);
    Token token{row, active, from, active && from.exists, {}, {}};
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Int count = p_.added[i].table.shape()[0].value();
      const rows::IndexedRow named = rows::indexed_row(indices[i][0], count);
      token.added.push_back({named.row, named.exists && token.exists});
    }
    if (p_.row_scale)
      token.factor.emplace(load_if(token.exists, (*p_.row_scale)(from.row), 1)[0].get());
    return token;
  }

  /// Of any alignment: an access splits up where addresses have less.
  Fragment load(const Tensor& table, const Value& row, const Value& column,
                const Value& exists) const {
    const Value index = row.bitcast(bits(row.type()) == 32 ? s32 : s64);
    return load_if(exists, table(index, column), vector_elems());
  }
  TokenPart load_part(const Token& token, const Value& column, const Value& inside) const {
    TokenPart part{load(p_.table, token.from.row, column, inside && token.exists), {}};
    for (std::size_t i = 0; i < p_.added.size(); ++i) {
      const rows::IndexedRow& row = token.added[i];
      part.added.push_back(load(p_.added[i].table, row.row, column, inside && row.exists));
    }
    return part;
  }

  /// What the norm reads: as residual_out has it, or in f32.
  Fragment summed(const Token& token, const TokenPart& part) const {
    const Fragment wide = embedded(p_, part.row, token.exists, token.factor, part.added);
    return n_.residual_out ? wide.to(n_.residual_out->type()) : wide;
  }

  void count(const Token& token) const {
    if (!p_.bad_ids) return;
    if_(token.active && !token.from.exists && threads_.lane() == 0,
        [&] { red_add((*p_.bad_ids)(0), 1); });
  }

  // ---- The norm ----

  Value factor_of(const Value& squares) const {
    return rsqrt_approx(fma(squares, 1.0f / static_cast<float>(config_.row.h), *n_.eps));
  }

  /// In f32. A token without a row gets +0, whatever the weights and eps are.
  Fragment normalised(const Token& token, const Fragment& z, const Value& factor,
                      const std::optional<Fragment>& weight) const {
    Fragment product = z.to(f32) * factor;
    if (weight) {
      Fragment weights = weight->to(f32);
      if (config_.has_weight_bias) weights = weights + *n_.weight_bias;
      product = product * weights;
    } else if (config_.has_weight_bias) {
      product = product * (*n_.weight_bias + 1.0f);
    }
    return map(product, [&](const Value& x) { return select(token.from.exists, x, 0.0f); });
  }

  /// Whether the token's rows of the outputs are written.
  Value stores(const Token& token) const {
    return plan_.config.missing == MissingRow::skip ? token.exists : token.active;
  }

  // ---- Rows held in registers ----

  void held_row(const Value& row, const rows::Row& early) const {
    const Token token = token_of(row, is_active(row));
    std::vector<TokenPart> parts;
    parts.reserve(static_cast<std::size_t>(config_.row.vectors));
    for (int j = 0; j < config_.row.vectors; ++j)
      parts.push_back(load_part(token, threads_.column(j), threads_.inside(j)));
    if (config_.weights == WeightLoads::early) load_before(parts, early);
    rows::Row z;
    std::vector<Value> squares;
    for (const TokenPart& part : parts) {
      z.push_back(summed(token, part));
      squares.push_back(rows::sum_of_squares(z.back().to(f32)));
    }
    if (n_.residual_out) {
      if_(stores(token), [&] {
        for (int j = 0; j < config_.row.vectors; ++j)
          threads_.store_access(*n_.residual_out, row, j, z[static_cast<std::size_t>(j)]);
      });
    }
    const Value factor = factor_of(threads_.sum(squares));
    if_(stores(token), [&] {
      const rows::Row weights = n_.w && is_late() ? threads_.load_vector(*n_.w) : early;
      for (int j = 0; j < config_.row.vectors; ++j) {
        const auto i = static_cast<std::size_t>(j);
        std::optional<Fragment> weight;
        if (n_.w) weight.emplace(weights[i]);
        threads_.store_access(p_.out, row, j,
                              normalised(token, z[i], factor, weight).to(p_.out.type()));
      }
    });
    count(token);
  }

  static void load_before(const std::vector<TokenPart>& parts, const rows::Row& weights) {
    rows::Row first, others = weights;
    for (const TokenPart& part : parts) {
      first.push_back(part.row);
      others.insert(others.end(), part.added.begin(), part.added.end());
    }
    loaded_together(first, others);
  }

  // ---- Rows too long for registers: gathered again for the second pass ----

  void looped_row(const Value& row) const {
    const Token token = token_of(row, always());
    rows::LongSum squares;
    for_columns([&](const Value& column) {
      const Fragment z = summed(token, load_part(token, column, always()));
      squares.add(rows::sum_of_squares(z.to(f32)));
    });
    const Value factor = factor_of(threads_.sum({squares.total()}));
    if_(stores(token),
        [&] { for_columns([&](const Value& column) { write_looped(token, column, factor); }); });
    count(token);
  }

  void write_looped(const Token& token, const Value& column, const Value& factor) const {
    const Fragment z = summed(token, load_part(token, column, always()));
    std::optional<Fragment> weight;
    if (n_.w) weight.emplace(load_if(always(), (*n_.w)(column), vector_elems()));
    const Fragment y = normalised(token, z, factor, weight).to(p_.out.type());
    if (n_.residual_out) store_if(always(), (*n_.residual_out)(token.row, column), z);
    store_if(always(), p_.out(token.row, column), y);
  }

  template <class Body>
  void for_columns(Body&& body) const {
    const int step = config_.row.threads_per_row * vector_elems();
    for_(threads_.lane() * vector_elems(), static_cast<int>(config_.row.h), step, body);
  }

  const RowGatherPlan& plan_;
  const RowNormConfig& config_;
  const GatherParameters& p_;
  const GatherNormParameters& n_;
  Value row_count_;
  rows::RowThreads threads_;
};

}  // namespace

void trace_gather_norm(const RowGatherPlan& plan, const GatherParameters& parameters,
                       const GatherNormParameters& norm) {
  GatherNormKernel(plan, parameters, norm)();
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// The device side of gather_rows and embedding.
#include "kernels/row_gather/row_gather.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"

#include <optional>
#include <vector>

namespace tilewright {
namespace {

class RowGatherKernel {
 public:
  RowGatherKernel(const RowGatherPlan& plan, const Value& first_id, const Value& scale)
      : plan_(plan), first_id_(first_id), scale_(scale) {}

  void operator()(const Tensor& ids, const Tensor& table, const Tensor& row_scale,
                  const Tensor& out, const Value& along) const {
    const std::vector<rows::RowShare> shares =
        rows::row_shares(plan_.config.tile, along, out.shape()[0].value(), out.shape()[1].value());
    if_(shares.front().inside, [&] {
      Value row = Value(ids(shares.front().row)).to(s64) - first_id_;
      Value exists = row >= 0 && row < to_value(table.shape()[0].value()).to(s64);
      std::vector<Fragment> loaded;  // all on their way before the first store
      for (const rows::RowShare& share : shares) {
        Value active = &share == &shares.front() ? exists : exists && share.inside;
        loaded.push_back(load_if(active, table(row, share.column), plan_.config.tile.vector_elems));
      }
      std::optional<Value> factor;
      if (plan_.tensors.row_scale) factor.emplace(load_if(exists, row_scale(row), 1)[0].get());
      for (std::size_t j = 0; j < shares.size(); ++j) {
        const rows::RowShare& share = shares[j];
        Fragment stored = loaded[j];
        if (plan_.config.mode == GatherMode::convert) {
          stored = converted(loaded[j], exists, factor).to(out.type());
        }
        Value inside = j == 0 ? constant(pred, true) : share.inside;
        store_if(inside, out(share.row, share.column), stored);
      }
    });
  }

 private:
  Fragment converted(const Fragment& row, const Value& exists,
                     const std::optional<Value>& factor) const {
    Fragment wide = row.to(f32);
    if (factor) wide = wide * *factor;
    if (!plan_.config.has_scale) return wide;
    return map(wide, [&](const Value& x) {
      return select(exists, x * scale_, 0.0f);  // 0 * scale may be -0
    });
  }

  const RowGatherPlan& plan_;
  Value first_id_, scale_;
};

}  // namespace

Traced RowGatherPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = std::string(op) + "_" + std::string(name(table_arg.type)),
                             .target = target,
                             .block = {config.tile.threads, 1, 1}};
  auto body = [this](const Tensor& ids, const Tensor& table, const Tensor& row_scale,
                     const Tensor& out, const Value& first_id, const Value& scale,
                     const Value& along) {
    RowGatherKernel(*this, first_id, scale)(ids, table, row_scale, out, along);
  };
  return tilewright::trace(trace_options, body, ids_arg, table_arg, scale_arg, out_arg,
                           ScalarArg{s64, {}}, ScalarArg{f32, {}}, rows::divisor_arg());
}

}  // namespace tilewright

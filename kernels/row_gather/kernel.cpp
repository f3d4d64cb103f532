// SPDX-License-Identifier: Apache-2.0
// The device side of gather_rows and embedding.
#include "kernels/row_gather/row_gather.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"

namespace tilewright {
namespace {

class RowGatherKernel {
 public:
  explicit RowGatherKernel(const RowGatherPlan& plan) : plan_(plan) {}

  void operator()(const Tensor& ids, const Tensor& table, const Tensor& row_scale,
                  const Tensor& out, const Value& first_id, const Value& scale,
                  const Value& tiles_n) const {
    rows::RowShare share =
        rows::row_share(plan_.config.tile, tiles_n, out.shape()[0].value(), out.shape()[1].value());
    if_(share.inside, [&] {
      Value row = Value(ids(share.row)).to(s64) - first_id;
      Value exists = row >= 0 && row < to_value(table.shape()[0].value()).to(s64);
      Fragment loaded = load_if(exists, table(row, share.column), plan_.config.tile.vector_elems);
      if (plan_.config.mode == GatherMode::copy) {
        store(out(share.row, share.column), loaded);
        return;
      }
      Fragment wide = loaded.to(f32);
      if (plan_.tensors.row_scale) wide = wide * load_if(exists, row_scale(row), 1)[0].get();
      if (plan_.config.has_scale)
        wide = map(wide, [&](const Value& x) {
          return select(exists, x * scale, 0.0f);  // 0 * scale may be -0
        });
      store(out(share.row, share.column), wide.to(out.type()));
    });
  }

 private:
  const RowGatherPlan& plan_;
};

}  // namespace

Traced RowGatherPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = std::string(op) + "_" + std::string(name(table_arg.type)),
                             .target = target,
                             .block = {config.tile.threads, 1, 1}};
  ScalarArg count{s32, {1, 1, 2'147'483'647}};
  return tilewright::trace(trace_options, RowGatherKernel(*this), ids_arg, table_arg, scale_arg,
                           out_arg, ScalarArg{s64, {}}, ScalarArg{f32, {}}, count);
}

}  // namespace tilewright

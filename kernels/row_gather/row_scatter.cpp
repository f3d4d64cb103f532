// SPDX-License-Identifier: Apache-2.0
// scatter_rows: checks, access width, and the device side.
#include "kernels/row_gather/row_scatter.h"

#include "kernels/row_gather/row_checks.h"
#include "kernels/rows/row_arg.h"
#include "kernels/rows/row_index.h"
#include "kernels/rows/row_tile_space.h"
#include "tilewright/fragment.h"
#include "tilewright/loaded_together.h"
#include "tilewright/stream.h"

#include <array>
#include <vector>

namespace tilewright {
namespace {

const tune::Space& scatter_space() {
  static const tune::Space space =
      rows::row_tile_space("scatter_rows", rows::TileAccesses::several);
  return space;
}

/// Only stores depend on the index: loads of rows are on their way beside its own. Left alone,
/// ptxas moves a thread's only load behind the index's comparison, and one row takes two latencies.
void scatter(const RowScatterPlan& plan, const Tensor& src, const Tensor& ids, const Tensor& dst) {
  const int elems = plan.tile.vector_elems;
  const std::vector<rows::RowShare> shares =
      rows::row_shares(plan.tile, src.shape()[0].value(), plan.tensors.src.shape[1]);
  const Fragment id = load_if(shares.front().in_rows, ids(shares.front().row), 1);
  std::vector<Fragment> loaded;
  loaded.reserve(shares.size());
  for (const rows::RowShare& share : shares) {
    const Element first = rows::early_access(src, share.row, share.column, elems);
    loaded.push_back(load_if(share.inside, first, elems));
  }
  loaded_together(std::array{id}, loaded);
  const rows::IndexedRow to = rows::indexed_row(id[0], dst.shape()[0].value());
  for (std::size_t j = 0; j < shares.size(); ++j) {
    const Element place = rows::late_access(dst, to, shares[j].column, elems);
    store_if(shares[j].inside && to.exists, place, loaded[j]);
  }
}

}  // namespace

RowScatterPlan plan_row_scatter(const DeviceProperties& device, const RowScatterTensors& tensors,
                                SourceLoc at) {
  const rows::Caller caller{"scatter_rows", at};
  const auto& [src, ids, dst] = tensors;
  check_same_type(src, dst, "a scatter", caller);
  check_row_types(ids, src, caller);
  check_row_pair(ids, {src, "src"}, {dst, "dst"}, caller);
  rows::check_vector(ids, "ids", src.shape[0], caller);
  RowScatterPlan plan;
  plan.tensors = {rows::as_bits(src), ids, rows::as_bits(dst)};
  const RowScatterTensors& t = plan.tensors;
  plan.tile = rows::choose_row_tile(scatter_space(), device, t.src,
                                    rows::common_vector(t.src.type, std::array{t.src, t.dst}));
  plan.src_arg = rows::rows_arg(t.src);
  plan.ids_arg = rows::rows_arg(t.ids);
  plan.dst_arg = rows::rows_arg(t.dst);
  plan.launch = rows::row_tile_launch(plan.tile, t.src.shape[0], t.src.shape[1], caller);
  return plan;
}

std::string RowScatterPlan::key() const {
  return "scatter_rows/2 " + rows::to_string(tile) + " | " + to_string(src_arg) + " | " +
         to_string(ids_arg) + " | " + to_string(dst_arg);
}

Traced RowScatterPlan::trace(ptx::Target target) const {
  const TraceOptions options{.name = "scatter_rows_" + std::string(name(src_arg.type)),
                             .target = target,
                             .block = {tile.threads, 1, 1}};
  return tilewright::trace(
      options,
      [this](const Tensor& src, const Tensor& ids, const Tensor& dst) {
        scatter(*this, src, ids, dst);
      },
      src_arg, ids_arg, dst_arg);
}

Parameters RowScatterPlan::parameters() const {
  Parameters parameters;
  pack(parameters, src_arg, tensors.src);
  pack(parameters, ids_arg, tensors.ids);
  pack(parameters, dst_arg, tensors.dst);
  return parameters;
}

void scatter_rows(const Stream& stream, const View& src, const View& ids, const View& dst,
                  SourceLoc at) {
  const RowScatterPlan plan = plan_row_scatter(stream.device().properties(), {src, ids, dst}, at);
  if (src.shape[0] == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// The host side of pooling: checks, one or two launches, their configurations.
#include "kernels/pooling/pooling.h"
#include "kernels/rows/rows.h"
#include "tilewright/stream.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMaxHeld = 32;  // elements of a row that a thread holds
constexpr std::int64_t kMaxColumns = std::int64_t{1} << 30;

constexpr std::array<tune::KeySpec, 3> kKeys{
    {{"strips"}, {"sequences", tune::Match::nearest}, {"rows", tune::Match::nearest}}};
constexpr std::array kSplits{1, 2, 4, 8};
constexpr std::array kWarps{8, 16};
constexpr std::array<tune::Knob, 2> kKnobs{{{"splits", kSplits}, {"warps", kWarps}}};
constexpr std::array<tune::Reducible, 1> kReducible{{{"T", 300}}};

/// Sequences of more than 4096 rows are shared until every multiprocessor has a block; more warps
/// keep enough bytes on their way where it has no second one.
tune::Config standard(const DeviceProperties& device, const tune::Key& key) {
  constexpr std::int64_t kLong = 4096;
  int splits = 1;
  while (splits < 8 && key[2] > kLong && key[0] * key[1] * splits < device.sm_count)
    splits *= 2;
  return {splits, key[0] * key[1] * splits <= device.sm_count ? 16 : 8};
}
bool valid(const DeviceProperties&, const tune::Key&, const tune::Config& config) {
  const bool splits = config[0] == 1 || config[0] == 2 || config[0] == 4 || config[0] == 8;
  return splits && (config[1] == 8 || config[1] == 16);
}
constexpr tune::Space kSpace{"pooling", kKeys, kKnobs, standard, valid, kReducible};

constexpr std::array<tune::KeySpec, 3> kRowKeys{
    {{"elems"}, {"columns", tune::Match::nearest}, {"sequences", tune::Match::nearest}}};
constexpr std::array kThreads{32, 64, 128, 256, 512, 1024};
constexpr std::array<tune::Knob, 1> kRowKnobs{{{"threads", kThreads}}};

/// Threads that have one access each.
std::int64_t most_threads(const tune::Key& key) {
  return rows::power_of_two_from(rows::ceil_div(key[1], key[0]));
}
/// Of two accesses a thread.
tune::Config standard_row(const DeviceProperties&, const tune::Key& key) {
  return {static_cast<int>(std::clamp<std::int64_t>(most_threads(key) / 2, 32, kMaxThreads))};
}
bool valid_row(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const bool listed = std::find(kThreads.begin(), kThreads.end(), config[0]) != kThreads.end();
  return listed && config[0] <= std::max<std::int64_t>(most_threads(key), 32);
}
constexpr tune::Space kRowSpace{"pooling.rows", kRowKeys,  kRowKnobs,
                                standard_row,   valid_row, kReducible};

struct Checks {
  const PoolingTensors& t;
  const PoolingOptions& options;
  rows::Caller caller;

  void matrix(const View& view, const char* which) const {
    const std::string what = std::string(which) + " is " + to_string(view);
    if (view.rank != 2) caller.refuse(what + "; it must have two modes");
    if (view.shape[1] == 0) caller.refuse(what + "; rows must have elements");
    if (view.shape[1] > 1 && view.stride[1] != 1)
      caller.refuse(what + "; its last stride must be 1");
  }

  void shapes() const {
    rows::check_real(t.hidden, "hidden", caller);
    matrix(t.hidden, "hidden");
    matrix(t.out, "out");
    sequences();
    rows::check_like_or_f32(t.out, "out", t.hidden.type, "hidden", caller);
    const std::int64_t columns = t.out.shape[1];
    if (columns > t.hidden.shape[1]) {
      caller.refuse("out is " + to_string(t.out) + " and hidden " + to_string(t.hidden) +
                    "; rows of out must not be longer");
    }
    if (columns > kMaxColumns) {
      caller.refuse("out is " + to_string(t.out) + "; rows have " + std::to_string(kMaxColumns) +
                    " elements at most");
    }
  }

  void sequences() const {
    if (t.cu_seqlens.has_value() == t.lengths.has_value()) {
      caller.refuse(std::string("cu_seqlens and lengths are ") +
                    (t.lengths ? "both given" : "absent") + "; one of them must be given");
    }
    const char* which = t.lengths ? "lengths" : "cu_seqlens";
    const View& bounds = t.lengths ? *t.lengths : *t.cu_seqlens;
    const std::int64_t least = t.lengths ? 0 : 1;
    if (bounds.type != s32 || bounds.rank != 1 || bounds.shape[0] < least) {
      caller.refuse(std::string(which) + " is " + to_string(bounds) + "; it must be " +
                    (t.lengths ? "s32[B]" : "s32[B + 1]"));
    }
    rows::check_vector(bounds, which, t.out.shape[0] + least, caller);
  }

  void mask() const {
    if (!t.mask) return;
    if (options.mode != PoolingMode::mean)
      caller.refuse("mask is given; only the mode mean takes one");
    if (t.mask->type != u8 && t.mask->type != s32) {
      caller.refuse("mask has type " + std::string(name(t.mask->type)) + "; it must be u8 or s32");
    }
    rows::check_vector(*t.mask, "mask", t.hidden.shape[0], caller);
  }

  /// Whether means are kept in f32 apart from out.
  bool needs_means() const {
    const bool means = options.mode == PoolingMode::mean && options.normalize;
    return means && t.out.type != f32 && t.out.shape[0] > 0;
  }

  void memory() const {
    rows::check_distinct(t.out, "out", caller);
    rows::check_apart(t.hidden, "hidden", t.out, "out", caller);
    if (t.cu_seqlens) rows::check_apart(*t.cu_seqlens, "cu_seqlens", t.out, "out", caller);
    if (t.lengths) rows::check_apart(*t.lengths, "lengths", t.out, "out", caller);
    if (t.mask) rows::check_apart(*t.mask, "mask", t.out, "out", caller);
    if (!needs_means()) return;
    const std::string shape =
        "f32[" + std::to_string(t.out.shape[0]) + "," + std::to_string(t.out.shape[1]) + "]";
    if (!t.means) caller.refuse("means is missing; normalised means need scratch " + shape);
    const bool fits = t.means->type == f32 && t.means->rank == 2 && t.means->shape == t.out.shape &&
                      is_row_major(*t.means);
    if (!fits) caller.refuse("means is " + to_string(*t.means) + "; it must be " + shape);
  }
};

View with_columns(const View& view, std::int64_t columns) {
  View part = view;
  part.shape[1] = columns;
  return part;
}

const View& bounds_of(const PoolingTensors& t) { return t.lengths ? *t.lengths : *t.cu_seqlens; }
SequenceBounds kind_of(const PoolingTensors& t) {
  return t.lengths ? SequenceBounds::lengths : SequenceBounds::starts;
}
const char* key_text(SequenceBounds kind) {
  return kind == SequenceBounds::lengths ? " lengths" : "";
}

int few_rows(std::int64_t rows) {
  if (rows > MeanConfig::kRowsInFlight) return 0;
  return static_cast<int>(rows::power_of_two_from(rows));
}
/// Of an access where little is read: what is stored has 16 bytes at most, since threads that each
/// store two halves of a sector take longer than one row does.
int elems_of_access(int common, const View& out) { return std::min(common, 16 / bytes(out.type)); }

PoolMeanPlan plan_mean(const DeviceProperties& device, const PoolingTensors& t, const View& out,
                       const rows::Caller& caller) {
  PoolMeanPlan plan;
  plan.hidden = with_columns(t.hidden, out.shape[1]);
  plan.bounds = bounds_of(t);
  plan.mask = t.mask;
  plan.out = out;
  MeanConfig& config = plan.config;
  config.few = few_rows(t.hidden.shape[0]);
  config.vector_elems = rows::common_vector(t.hidden.type, std::array{plan.hidden});
  if (config.few > 0) config.vector_elems = elems_of_access(config.vector_elems, out);
  config.columns = out.shape[1];
  config.bounds = kind_of(t);
  config.strips = static_cast<int>(rows::ceil_div(out.shape[1], config.strip_columns()));
  const std::int64_t sequences = out.shape[0];
  const std::int64_t rows_each = t.hidden.shape[0] / std::max<std::int64_t>(sequences, 1);
  const tune::Config chosen =
      config.few > 0 ? tune::Config{1, 1}
                     : tune::choose(kSpace, device, {config.strips, sequences, rows_each});
  config.splits = chosen[0];
  config.warps = chosen[1];
  plan.hidden_arg = tensor_arg(plan.hidden, {.extents = 0b01, .strides = 0b01});
  plan.bounds_arg = tensor_arg(plan.bounds, {.extents = 1});
  plan.out_arg = tensor_arg(out, {.extents = 0b01, .strides = 0b01});
  if (t.mask) plan.mask_arg = tensor_arg(*t.mask, {.extents = 1});
  plan.launch.grid.x = rows::row_blocks(sequences * config.strips * config.splits, 1, caller);
  plan.launch.block.x = 32 * config.warps;
  plan.launch.cluster.x = config.splits;
  return plan;
}

PoolRowsPlan plan_rows(const DeviceProperties& device, const PoolingTensors& t, const View& source,
                       const PoolingOptions& options, const rows::Caller& caller) {
  PoolRowsPlan plan;
  plan.options = options;
  plan.source = with_columns(source, t.out.shape[1]);
  plan.bounds = bounds_of(t);
  plan.kind = kind_of(t);
  plan.out = t.out;
  const std::int64_t columns = t.out.shape[1];
  const int elems =
      elems_of_access(rows::common_vector(source.type, std::array{plan.source, t.out}), t.out);
  const int threads = tune::choose(kRowSpace, device, {elems, columns, t.out.shape[0]})[0];
  plan.shape = rows::make_row_shape(columns, elems, threads, kMaxHeld / elems);
  plan.source_arg = tensor_arg(plan.source, {.extents = 0b01, .strides = 0b01});
  plan.bounds_arg = tensor_arg(plan.bounds, {.extents = 1});
  plan.out_arg = tensor_arg(t.out, {.extents = 0b01, .strides = 0b01});
  plan.launch.grid.x = rows::row_blocks(t.out.shape[0], 1, caller);
  plan.launch.block.x = plan.shape.threads();
  return plan;
}

}  // namespace

PoolingPlan plan_pooling(const DeviceProperties& device, const PoolingTensors& tensors,
                         const PoolingOptions& options, SourceLoc at) {
  rows::Caller caller{"pooling", at};
  const Checks checks{tensors, options, caller};
  checks.shapes();
  checks.mask();
  checks.memory();
  PoolingPlan plan;
  const bool means = options.mode == PoolingMode::mean;
  const View& target = checks.needs_means() ? *tensors.means : tensors.out;
  if (means) plan.mean = plan_mean(device, tensors, target, caller);
  if (!means || options.normalize)
    plan.rows = plan_rows(device, tensors, means ? target : tensors.hidden, options, caller);
  return plan;
}

std::string PoolMeanPlan::key() const {
  return "pooling_mean/3 v=" + std::to_string(config.vector_elems) +
         " s=" + std::to_string(config.splits) + " w=" + std::to_string(config.warps) +
         " n=" + std::to_string(config.columns) + " few=" + std::to_string(config.few) +
         key_text(config.bounds) + " | " + to_string(hidden_arg) + " | " + to_string(bounds_arg) +
         " | " + rows::key_text(mask_arg) + " | " + to_string(out_arg);
}

Parameters PoolMeanPlan::parameters() const {
  Parameters parameters;
  pack(parameters, hidden_arg, hidden);
  pack(parameters, bounds_arg, bounds);
  if (mask_arg) pack(parameters, *mask_arg, *mask);
  pack(parameters, out_arg, out);
  return parameters;
}

std::string PoolRowsPlan::key() const {
  return "pooling_rows/3 mode=" + std::to_string(static_cast<int>(options.mode)) +
         (options.normalize ? " normalize " : " ") + rows::to_string(shape) + key_text(kind) +
         " | " + to_string(source_arg) + " | " + to_string(bounds_arg) + " | " + to_string(out_arg);
}

Parameters PoolRowsPlan::parameters() const {
  Parameters parameters;
  pack(parameters, source_arg, source);
  pack(parameters, bounds_arg, bounds);
  pack(parameters, out_arg, out);
  return parameters;
}

void launch_pooling(const Stream& stream, const PoolingPlan& plan, SourceLoc at) {
  if (plan.mean && plan.mean->launch.grid.x > 0)
    rows::prepare(stream.device(), *plan.mean, at).launch(stream, at);
  if (plan.rows && plan.rows->launch.grid.x > 0)
    rows::prepare(stream.device(), *plan.rows, at).launch(stream, at);
}

void pooling(const Stream& stream, const PoolingTensors& tensors, const PoolingOptions& options,
             SourceLoc at) {
  launch_pooling(stream, plan_pooling(stream.device().properties(), tensors, options, at), at);
}

}  // namespace tilewright

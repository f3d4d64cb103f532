// SPDX-License-Identifier: Apache-2.0
// The operator pooling as the command line and bindings see it.
#include "kernels/pooling/reference.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewright {
namespace {

constexpr std::array kS32{s32};
constexpr std::array kMasks{u8, s32};
constexpr std::array<TensorSpec, 5> kTensors{{
    {.name = "hidden",
     .role = Role::input,
     .shape = "T,H",
     .types = kReals,
     .doc = "rows of all sequences"},
    {.name = "cu_seqlens",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "_",
     .types = kS32,
     .doc = "[B + 1]: where sequences begin, and the end; ascending, at most T"},
    {.name = "lengths",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "B",
     .types = kS32,
     .doc = "in place of cu_seqlens: rows of sequences that follow each other, at most T in all"},
    {.name = "mask",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "T",
     .types = kMasks,
     .doc = "mean alone: rows with 0 are left out"},
    {.name = "out",
     .role = Role::output,
     .shape = "B,_",
     .types = kReals,
     .doc = "[B, dims] of out_type; zeros for a sequence without rows"},
}};

constexpr std::array<std::string_view, 3> kModes{"mean", "last", "cls"};
constexpr std::array<std::string_view, 2> kPoolingTypes{"f32", "as_hidden"};
constexpr std::array<OptionSpec, 4> kOptions{{
    {.name = "mode",
     .type = OptionType::choice,
     .default_text = "mean",
     .words = kModes,
     .doc = "the mean of the rows, the last or the first one"},
    {.name = "normalize",
     .type = OptionType::boolean,
     .default_text = "false",
     .doc = "divide by max(L2 norm, 1e-12); a norm of 1.8e19 and more counts as infinite"},
    {.name = "dims",
     .type = OptionType::integer,
     .default_text = "0",
     .least = 0,
     .doc = "take the first elements of rows only, before the norm; 0: all"},
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "f32",
     .words = kPoolingTypes,
     .doc = "type of out"},
}};

// Embedding models with the hidden sizes of Qwen3-0.6B and Qwen3-8B.
constexpr std::array<std::string_view, 4> kBenchProblems{
    "T=32768,B=64,H=1024,hidden=bf16,normalize=true",
    "T=32768,B=64,H=4096,hidden=bf16,normalize=true", "T=32768,B=1,H=4096,hidden=bf16",
    "T=32768,B=64,H=4096,hidden=bf16,mode=last,normalize=true,dims=1024"};

PoolingOptions options_of(const Arguments& a) {
  const std::string_view mode = a.text("mode");
  return {.mode = mode == "mean"   ? PoolingMode::mean
                  : mode == "last" ? PoolingMode::last
                                   : PoolingMode::cls,
          .normalize = a.boolean("normalize")};
}

std::int64_t sequences_of(const Arguments& a) {
  const View* starts = a.find("cu_seqlens");
  const View* lengths = a.find("lengths");
  if ((starts == nullptr) == (lengths == nullptr)) {
    a.fail(std::string("cu_seqlens and lengths are ") +
           (starts == nullptr ? "absent" : "both given") + "; one of them must be given");
  }
  if (starts == nullptr) return lengths->shape[0];
  if (starts->rank != 1 || starts->shape[0] < 1)
    a.fail("cu_seqlens is " + to_string(*starts) + "; it must be s32[B + 1]");
  return starts->shape[0] - 1;
}

std::vector<OutputSpec> outputs(const Arguments& a) {
  const View& hidden = a.tensor("hidden");
  if (hidden.rank != 2) a.fail("hidden is " + to_string(hidden) + "; it must have two modes");
  const std::int64_t dims = a.integer("dims");
  if (dims > hidden.shape[1]) {
    a.fail("dims=" + std::to_string(dims) + " and hidden is " + to_string(hidden) +
           "; it must be H at most");
  }
  return {{"out",
           a.text("out_type") == "f32" ? f32 : hidden.type,
           {sequences_of(a), dims == 0 ? hidden.shape[1] : dims}}};
}

std::int64_t workspace_bytes(const Arguments& a) {
  const OutputSpec out = outputs(a).front();
  const bool needed = options_of(a).mode == PoolingMode::mean && a.boolean("normalize");
  return needed && out.type != f32 ? out.shape[0] * out.shape[1] * 4 : 0;
}

PoolingPlan plan_of(const DeviceProperties& device, const Arguments& a) {
  PoolingTensors tensors{.hidden = a.tensor("hidden"),
                         .cu_seqlens = optional_view(a, "cu_seqlens"),
                         .lengths = optional_view(a, "lengths"),
                         .mask = optional_view(a, "mask"),
                         .out = a.tensor("out")};
  const std::int64_t scratch_bytes = workspace_bytes(a);
  if (scratch_bytes > 0)
    tensors.means = make_view(a.workspace(scratch_bytes).address, f32, shape_of(tensors.out));
  return plan_pooling(device, tensors, options_of(a));
}

/// Contract, I 4.2: half an ulp of the output and, as an allowance, (log2(n) + 8) 2^-24 of mean
/// |h|. A norm adds a sum of squares and the reciprocal of its root, of means that may have
/// cancelled.
Tolerance tolerance(const Arguments& a, std::string_view) {
  const double norm = std::log2(static_cast<double>(a.tensor("hidden").shape[1])) + 8;
  return rounded_once(a.tensor("out").type, a.boolean("normalize") ? norm : 0);
}

void check_lengths(const Arguments& a, const Array& lengths) {
  const std::int64_t rows = a.size("T");
  std::int64_t total = 0;
  const std::vector<double> values = to_doubles(lengths);
  for (std::size_t b = 0; b < values.size(); ++b) {
    const auto length = static_cast<std::int64_t>(values[b]);
    const std::string text = "lengths[" + std::to_string(b) + "] is " + std::to_string(length);
    if (length < 1) a.fail(text + "; a sequence must have rows");
    total += length;
    if (total > rows) {
      a.fail(text + ", which makes " + std::to_string(total) + " rows; hidden has " +
             std::to_string(rows));
    }
  }
}

/// A sequence without rows has no vector; where its length is seen on the device alone, that is 0.
void check_contents(const Arguments& a, std::span<const Array> inputs) {
  if (const Array* lengths = find_input(inputs, "lengths")) {
    check_lengths(a, *lengths);
    return;
  }
  const Array* starts = find_input(inputs, "cu_seqlens");
  if (starts == nullptr) return;  // the plan says what is missing
  check_sequences(a, inputs, a.size("T"));
  const std::vector<double> first = to_doubles(*starts);
  for (std::size_t b = 0; b + 1 < first.size(); ++b) {
    if (first[b] < first[b + 1]) continue;
    a.fail("cu_seqlens[" + std::to_string(b) + "] and the next one are " +
           std::to_string(static_cast<std::int64_t>(first[b])) + "; sequence " + std::to_string(b) +
           " must have rows");
  }
}

/// Means read what is not cut off; the other modes one row a sequence.
std::int64_t bytes(const Arguments& a) {
  const View& out = a.tensor("out");
  const View& hidden = a.tensor("hidden");
  const bool mean = options_of(a).mode == PoolingMode::mean;
  const std::int64_t rows = mean ? hidden.shape[0] : out.shape[0];
  std::int64_t total =
      rows * out.shape[1] * bits(hidden.type) / 8 + size_bytes(out) +
      size_bytes(*(a.find("lengths") != nullptr ? a.find("lengths") : a.find("cu_seqlens")));
  if (const View* mask = a.find("mask")) total += size_bytes(*mask);
  return total;
}

/// Sequences of as equal lengths as there are: by cu_seqlens, unless the problem says lengths.
void fill_bounds(const Problem& problem, std::vector<Array>& inputs) {
  const std::int64_t sequences = problem.size("B"), rows = problem.size("T");
  std::vector<double> bounds;
  for (std::int64_t b = 0; b <= sequences; ++b)
    bounds.push_back(static_cast<double>(sequences == 0 ? 0 : rows * b / sequences));
  std::vector<double> lengths;
  for (std::size_t b = 0; b + 1 < bounds.size(); ++b)
    lengths.push_back(bounds[b + 1] - bounds[b]);
  const auto fill = [&](const char* name, const std::vector<double>& values) {
    const auto has = [&](const Array& array) { return array.name == name; };
    const auto at = std::find_if(inputs.begin(), inputs.end(), has);
    Array array = make_array(name, s32, {static_cast<std::int64_t>(values.size())}, values);
    if (at != inputs.end()) {
      *at = std::move(array);
    } else {
      inputs.push_back(std::move(array));
    }
  };
  if (find_input(inputs, "lengths") != nullptr) {
    fill("lengths", lengths);
  } else {
    fill("cu_seqlens", bounds);
  }
}

constexpr Operator kPooling{
    .schema = {.name = "pooling",
               .version = 1,
               .formula = "out[b] = mean of the rows of sequence b, or its last or first row; over "
                          "max(|out[b]|, 1e-12) with normalize",
               .doc = "One vector of each packed sequence, for embedding models.",
               .tensors = kTensors,
               .options = kOptions,
               .limits =
                   "Sequences without rows are refused where bounds are known, else 0. Means of n "
                   "rows may be off by (log2(n) + 8) 2^-24 of mean |h| besides the tolerance. A "
                   "mean's last bits depend on how many sequences share the device, for these "
                   "decide how a sum is split; last and first rows do not. Chunks of a text are "
                   "pooled without normalize, weighed by their rows, and normalised once."},
    .outputs = outputs,
    .launch = [](const Device& device, const Stream& stream,
                 const Arguments& a) { launch_pooling(stream, plan_of(device.properties(), a)); },
    .workspace_bytes = workspace_bytes,
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          pooling_reference(options_of(a), a.tensor("out").shape[1], tensors);
        },
    .tolerance = tolerance,
    .check_contents = check_contents,
    .bytes = bytes,
    .trace =
        [](const Arguments& a, ptx::Target target) {
          const PoolingPlan plan = plan_of(DeviceProperties{}, a);
          std::vector<Traced> traced;
          if (plan.mean) traced.push_back(plan.mean->trace(target));
          if (plan.rows) traced.push_back(plan.rows->trace(target));
          return traced;
        },
    .fill = fill_bounds,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& pooling_operator() { return kPooling; }

}  // namespace tilewright

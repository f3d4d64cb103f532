// SPDX-License-Identifier: Apache-2.0
// kda_conv_verify and kda_verify_compact as the command line and bindings see them.
#include "kernels/kda/option_specs.h"
#include "kernels/kda/reference.h"
#include "kernels/kda_conv_verify/reference.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace tilewright {
namespace {

constexpr std::array kBf16{bf16};
constexpr std::array kConv{f32, bf16};
constexpr std::array kIndices{s32, s64};

constexpr std::array<TensorSpec, 13> kInputsAndOut{{
    {.name = "mixed_qkv",
     .role = Role::input,
     .shape = "NT,D",
     .types = kBf16,
     .doc = "row n T + t: q, k and v of a token, H K + H K + HV V channels; rows may be apart"},
    {.name = "conv_weight",
     .role = Role::input,
     .shape = "D,4",
     .types = kConv,
     .doc = "tap 3 multiplies the newest input"},
    {.name = "conv_bias",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "D",
     .types = kConv},
    {.name = "conv_state",
     .role = Role::inout,
     .shape = "L,D,3",
     .types = kConv,
     .doc = "the last inputs, oldest first; taps or channels next to each other"},
    {.name = "conv_state_indices",
     .role = Role::input,
     .shape = "N",
     .types = kIndices,
     .doc = "the line of a row; negative: the row is inactive"},
    {.name = "intermediate_state_indices",
     .role = Role::input,
     .shape = "N",
     .types = kIndices,
     .doc = "the row's line of the snapshots; negative: none"},
    {.name = "a",
     .role = Role::input,
     .shape = "*",
     .types = kBf16,
     .doc = "[N,T,HV,K], [N,T,HV K] or [N T,HV K]: input of the decay gate"},
    {.name = "b",
     .role = Role::input,
     .shape = "*",
     .types = kBf16,
     .doc = "[N,T,HV] or [N T,HV]: beta before the sigmoid"},
    {.name = "A_log",
     .role = Role::input,
     .shape = "*",
     .types = kF32,
     .doc = "HV elements: log of the rate of the decay"},
    {.name = "dt_bias",
     .role = Role::input,
     .shape = "*",
     .types = kF32,
     .doc = "[HV,K] or [HV K]: added to a"},
    {.name = "ssm_states",
     .role = Role::input,
     .shape = "S,HV,V,K",
     .types = kF32,
     .doc = "K is 64 or 128, V a multiple of 32"},
    {.name = "cache_indices",
     .role = Role::input,
     .shape = "N",
     .types = kIndices,
     .doc = "the row's slot of ssm_states; negative: the row is inactive"},
    {.name = "out", .role = Role::output, .shape = "N,T,HV,V", .types = kBf16},
}};
constexpr TensorSpec kStates{.name = "intermediate_states_buffer",
                             .role = Role::output,
                             .presence = Presence::optional,
                             .shape = "SR,ST,HV,V,K",
                             .types = kF32,
                             .doc = "the state after each token"};
constexpr TensorSpec kWindows{.name = "intermediate_conv_window",
                              .role = Role::output,
                              .presence = Presence::optional,
                              .shape = "WL,WT,D,3",
                              .types = kConv,
                              .doc = "the last three inputs at each token; conv_state's type"};
constexpr TensorSpec record(std::string_view name, std::string_view shape, std::string_view doc) {
  return {.name = name, .role = Role::output, .shape = shape, .types = kF32, .doc = doc};
}
template <std::size_t N>
constexpr auto with(const std::array<TensorSpec, N>& more) {
  std::array<TensorSpec, kInputsAndOut.size() + N> all{};
  std::copy(kInputsAndOut.begin(), kInputsAndOut.end(), all.begin());
  std::copy(more.begin(), more.end(), all.begin() + kInputsAndOut.size());
  return all;
}
constexpr auto kTensors = with(std::array{kStates, kWindows});
constexpr auto kCompactTensors =
    with(std::array{kWindows, record("d_records", "N,T,HV,V", "beta (v - S k) of each token"),
                    record("k_records", "N,T,HV,K", "k of each token, of length 1"),
                    record("decay_records", "N,T,HV,K", "e^g of each token")});

constexpr std::array<std::string_view, 2> kIndexModes{"by_row", "by_index"};
constexpr std::array<std::string_view, 2> kStateModes{"roll", "keep"};
constexpr std::array<std::string_view, 3> kVariants{"auto", "small_batch", "large_batch"};
constexpr std::array<OptionSpec, 8> kOptions{{
    kda_schema::kScale,
    kda_schema::kLowerBound,
    kda_schema::kSoftplusBeta,
    kda_schema::kSoftplusThreshold,
    {.name = "use_qk_l2norm",
     .type = OptionType::boolean,
     .default_text = "true",
     .doc = "divide q and k by their length"},
    {.name = "snapshot_index_mode",
     .type = OptionType::choice,
     .default_text = "by_row",
     .words = kIndexModes,
     .doc = "states of row n go to row n, or to the line that intermediate_state_indices names"},
    {.name = "conv_state_mode",
     .type = OptionType::choice,
     .default_text = "roll",
     .words = kStateModes,
     .doc = "whether conv_state becomes the last three inputs"},
    {.name = "variant",
     .type = OptionType::choice,
     .default_text = "auto",
     .words = kVariants,
     .doc = "the kernel; all give the same bits"},
}};

constexpr std::array<std::string_view, 3> kProblems{
    "N=1,T=4,NT=4,HV=32,K=128,V=128,D=12288,L=1,S=1,conv_bias=f32,lower_bound=-5",
    "N=8,T=4,NT=32,HV=32,K=128,V=128,D=12288,L=8,S=8,conv_bias=f32,lower_bound=-5",
    "N=32,T=4,NT=128,HV=32,K=128,V=128,D=12288,L=32,S=32,conv_bias=f32,lower_bound=-5"};

KdaConvVerifyOptions options_of(const Arguments& arguments) {
  KdaConvVerifyOptions options;
  options.scale = optional_real(arguments, "scale");
  options.gate = kda::gate_options(arguments);
  options.use_qk_l2norm = arguments.boolean("use_qk_l2norm");
  if (arguments.text("snapshot_index_mode") == "by_index")
    options.snapshot_index_mode = SnapshotIndexMode::by_index;
  if (arguments.text("conv_state_mode") == "keep") options.conv_state_mode = ConvStateMode::keep;
  if (arguments.text("variant") == "small_batch") options.variant = KdaVariant::small_batch;
  if (arguments.text("variant") == "large_batch") options.variant = KdaVariant::large_batch;
  return options;
}

bool is_compact(const Arguments& arguments) {
  return arguments.schema().name == "kda_verify_compact";
}

KdaConvVerifyTensors tensors_of(const Arguments& arguments) {
  KdaConvVerifyTensors tensors{
      .mixed_qkv = arguments.tensor("mixed_qkv"),
      .conv_weight = arguments.tensor("conv_weight"),
      .conv_bias = optional_view(arguments, "conv_bias"),
      .conv_state = arguments.tensor("conv_state"),
      .conv_state_indices = arguments.tensor("conv_state_indices"),
      .intermediate_state_indices = arguments.tensor("intermediate_state_indices"),
      .a = arguments.tensor("a"),
      .b = arguments.tensor("b"),
      .A_log = arguments.tensor("A_log"),
      .dt_bias = arguments.tensor("dt_bias"),
      .ssm_states = arguments.tensor("ssm_states"),
      .cache_indices = arguments.tensor("cache_indices"),
      .out = arguments.tensor("out"),
      .intermediate_conv_window = optional_view(arguments, "intermediate_conv_window")};
  if (is_compact(arguments)) {
    tensors.d_records = arguments.tensor("d_records");
    tensors.k_records = arguments.tensor("k_records");
    tensors.decay_records = arguments.tensor("decay_records");
  } else {
    tensors.intermediate_states_buffer = optional_view(arguments, "intermediate_states_buffer");
  }
  return tensors;
}

/// Pools of snapshots have as many lines as conv_state, so that its indices serve them too.
std::vector<OutputSpec> outputs(const Arguments& arguments) {
  arguments.check(Arguments::Outputs::optional);
  std::int64_t n = arguments.size("N"), heads = arguments.size("HV");
  std::int64_t v = arguments.size("V"), k = arguments.size("K"), d = arguments.size("D");
  std::int64_t t = n == 0 ? 0 : arguments.size("NT") / n;
  std::int64_t lines = std::max(n, arguments.size("L"));
  bool by_index = arguments.text("snapshot_index_mode") == "by_index";
  std::vector<OutputSpec> all{
      {"out", bf16, {n, t, heads, v}},
      {"intermediate_conv_window", arguments.tensor("conv_state").type, {lines, t, d, 3}}};
  if (is_compact(arguments)) {
    all.push_back({"d_records", f32, {n, t, heads, v}});
    all.push_back({"k_records", f32, {n, t, heads, k}});
    all.push_back({"decay_records", f32, {n, t, heads, k}});
  } else {
    all.push_back({"intermediate_states_buffer", f32, {by_index ? lines : n, t, heads, v, k}});
  }
  return all;
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  kda_conv_verify(stream, tensors_of(arguments), options_of(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  kda_conv_verify_reference(options_of(arguments), arguments, tensors);
}

/// Contract, K 2.10: windows and conv_state are copies. Activations are rounded exactly, so that
/// only f32 arithmetic is between a state and its reference; out is rounded to bf16 besides.
Tolerance tolerance(const Arguments&, std::string_view output) {
  bool copied = output == "conv_state" || output == "intermediate_conv_window";
  return copied ? Tolerance{} : kda::token_tolerance(output);
}

/// Contract, K 8: states and conv_state of a row once in, everything else given once.
std::int64_t bytes(const Arguments& arguments) {
  KdaConvVerifyTensors t = tensors_of(arguments);
  std::int64_t n = t.out.shape[0], steps = t.out.shape[1];
  auto of_lines = [&](const View& pool) {
    return pool.shape[0] == 0 ? 0 : size_bytes(pool) / pool.shape[0] * n;
  };
  auto of_steps = [&](const View& pool) {
    return pool.shape[1] == 0 ? 0 : of_lines(pool) / pool.shape[1] * steps;
  };
  bool rolls = arguments.text("conv_state_mode") == "roll";
  std::int64_t total = of_lines(t.ssm_states) + of_lines(t.conv_state) * (rolls ? 2 : 1);
  for (const View* view : {&t.mixed_qkv, &t.conv_weight, &t.a, &t.b, &t.A_log, &t.dt_bias, &t.out,
                           &t.conv_state_indices, &t.intermediate_state_indices, &t.cache_indices})
    total += size_bytes(*view);
  if (t.conv_bias) total += size_bytes(*t.conv_bias);
  for (const std::optional<View>* view : {&t.d_records, &t.k_records, &t.decay_records})
    total += *view ? size_bytes(**view) : 0;
  if (t.intermediate_states_buffer) total += of_steps(*t.intermediate_states_buffer);
  if (t.intermediate_conv_window) total += of_steps(*t.intermediate_conv_window);
  return total;
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  KdaConvVerifyPlan plan =
      plan_kda_conv_verify(traced_device(), tensors_of(arguments), options_of(arguments));
  if (plan.launch.grid.x > 0) traced.push_back(plan.trace(target));
  return traced;
}

/// Row n has line n everywhere; gates of the shapes that "*" leaves open.
void fill(const Problem& problem, std::vector<Array>& inputs) {
  std::int64_t n = problem.size("N"), t = problem.size("T");
  std::int64_t heads = problem.size("HV"), k = problem.size("K");
  auto set = [&](Array& input, std::vector<std::int64_t> shape, auto&& value) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < element_count(shape); ++i)
      values.push_back(value(i));
    input = make_array(input.name, input.type, std::move(shape), values);
  };
  auto spread = [](std::int64_t i) { return static_cast<double>(i * 37 % 101) / 101 - 0.5; };
  for (Array& input : inputs) {
    if (input.name.ends_with("_indices"))
      set(input, {n}, [](std::int64_t i) { return static_cast<double>(i); });
    if (input.name == "a") set(input, {n, t, heads, k}, spread);
    if (input.name == "b") set(input, {n, t, heads}, spread);
    if (input.name == "dt_bias") set(input, {heads, k}, spread);
    if (input.name == "A_log") set(input, {heads}, [&](std::int64_t i) { return -1 + spread(i); });
  }
}

/// Case files keep snapshots in the order of rows; the operator writes them to the rows' lines.
void place_expected(const Arguments& arguments, const HostTensors& tensors, Array& expected) {
  bool by_index = arguments.text("snapshot_index_mode") == "by_index";
  bool indexed = expected.name == "intermediate_conv_window" ||
                 (by_index && expected.name == "intermediate_states_buffer");
  const View* pool = indexed ? arguments.find(expected.name) : nullptr;
  std::vector<double> lines = to_doubles(tensors.at("intermediate_state_indices"));
  auto n = static_cast<std::int64_t>(lines.size());
  if (pool == nullptr || expected.shape.empty() || expected.shape[0] != n || n == 0) return;
  std::vector<double> rows = to_doubles(expected);
  std::vector<std::int64_t> shape = expected.shape;
  shape[0] = pool->shape[0];
  std::size_t row = rows.size() / lines.size();
  std::vector<double> placed(static_cast<std::size_t>(shape[0]) * row,
                             std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] < 0 || lines[i] >= static_cast<double>(shape[0])) continue;
    std::copy_n(
        rows.begin() + static_cast<std::ptrdiff_t>(i * row), row,
        placed.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(lines[i]) * row));
  }
  expected = make_array(expected.name, expected.type, shape, placed);
}

void check_contents(const Arguments& arguments, std::span<const Array> inputs) {
  check_slots(arguments, inputs, "conv_state_indices", "conv_state");
  check_slots(arguments, inputs, "cache_indices", "ssm_states");
}

constexpr Operator make_operator(const Schema& schema) {
  return {.schema = schema,
          .outputs = outputs,
          .launch = launch,
          .reference = reference,
          .tolerance = tolerance,
          .nan_rule = skip_nan,
          .place_expected = place_expected,
          .check_contents = check_contents,
          .bytes = bytes,
          .trace = trace,
          .fill = fill,
          .bench_problems = kProblems};
}

constexpr Operator kVerify = make_operator(
    {.name = "kda_conv_verify",
     .version = 1,
     .formula = "q, k, v = silu(conv(mixed_qkv)); S = S diag(e^g); "
                "S += beta (v - S k) k^T; out = S q for T tokens in turn",
     .doc = "Kimi Delta Attention over draft tokens: convolution, gates and recurrence in one "
            "launch, with snapshots of every token.",
     .tensors = kTensors,
     .options = kOptions});
constexpr Operator kCompact = make_operator(
    {.name = "kda_verify_compact",
     .version = 1,
     .formula = "as kda_conv_verify; d = beta (v - S k), k and e^g of every token are kept",
     .doc = "kda_conv_verify with records instead of snapshots of the state; kda_commit makes the "
            "state of an accepted prefix from them.",
     .tensors = kCompactTensors,
     .options = kOptions});

}  // namespace

const Operator& kda_conv_verify_operator() { return kVerify; }
const Operator& kda_verify_compact_operator() { return kCompact; }

}  // namespace tilewright

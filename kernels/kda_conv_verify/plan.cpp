// SPDX-License-Identifier: Apache-2.0
// The host side of kda_conv_verify: views of the right ranks, configuration, grid, parameters.
#include "kernels/kda_conv_verify/checks.h"
#include "kernels/rows/row_shape.h"

#include <cmath>
#include <limits>

namespace tilewright {
namespace {

constexpr DynamicModes kFirst{.extents = 1, .strides = 1};
constexpr DynamicModes kFirstTwo{.extents = 1, .strides = 3};

std::optional<TensorArg> optional_arg(const std::optional<View>& view, DynamicModes dynamic) {
  return view ? std::optional(tensor_arg(*view, dynamic)) : std::nullopt;
}

KdaConvVerifyArguments<TensorArg> args_of(const KdaConvVerifyTensors& t) {
  return {.mixed_qkv = tensor_arg(t.mixed_qkv, kFirst),
          .conv_weight = tensor_arg(t.conv_weight),
          .conv_bias = optional_arg(t.conv_bias, {}),
          .conv_state = tensor_arg(t.conv_state, kFirst),
          .conv_state_indices = tensor_arg(t.conv_state_indices, kFirst),
          .intermediate_state_indices = tensor_arg(t.intermediate_state_indices, kFirst),
          .a = tensor_arg(t.a, kFirstTwo),
          .b = tensor_arg(t.b, kFirstTwo),
          .A_log = tensor_arg(t.A_log),
          .dt_bias = tensor_arg(t.dt_bias),
          .ssm_states = tensor_arg(t.ssm_states, kFirst),
          .cache_indices = tensor_arg(t.cache_indices, kFirst),
          .out = tensor_arg(t.out, kFirst),
          .intermediate_states_buffer = optional_arg(t.intermediate_states_buffer, kFirst),
          .intermediate_conv_window = optional_arg(t.intermediate_conv_window, kFirst),
          .d_records = optional_arg(t.d_records, kFirst),
          .k_records = optional_arg(t.k_records, kFirst),
          .decay_records = optional_arg(t.decay_records, kFirst)};
}

KdaConvVerifyConfig config_of(const KdaConvVerifyTensors& t, const KdaConvVerifyOptions& options) {
  KdaConvVerifyConfig config;
  config.tokens = static_cast<int>(t.a.shape[1]);
  config.v_heads = static_cast<int>(t.a.shape[2]);
  config.k = static_cast<int>(t.ssm_states.shape[3]);
  config.v = static_cast<int>(t.ssm_states.shape[2]);
  std::int64_t qk_channels = t.mixed_qkv.shape[1] - std::int64_t{config.v_heads} * config.v;
  config.q_heads = static_cast<int>(qk_channels / 2 / config.k);
  config.safe_gate = options.gate.lower_bound.has_value();
  config.l2norm = options.use_qk_l2norm;
  config.by_index = options.snapshot_index_mode == SnapshotIndexMode::by_index;
  config.roll = options.conv_state_mode == ConvStateMode::roll;
  return config;
}

}  // namespace

std::string to_string(const KdaConvVerifyConfig& c) {
  return to_string(c.tiling) + " t=" + std::to_string(c.tokens) +
         " h=" + std::to_string(c.q_heads) + "/" + std::to_string(c.v_heads) +
         " k=" + std::to_string(c.k) + " v=" + std::to_string(c.v) + (c.safe_gate ? " safe" : "") +
         (c.l2norm ? " l2norm" : "") + (c.by_index ? " by_index" : "") + (c.roll ? " roll" : "");
}

KdaConvVerifyPlan plan_kda_conv_verify(const DeviceProperties& device,
                                       const KdaConvVerifyTensors& tensors,
                                       const KdaConvVerifyOptions& options,
                                       const std::optional<KdaTiling>& tiling, SourceLoc at) {
  rows::Caller caller{tensors.d_records ? "kda_verify_compact" : "kda_conv_verify", at};
  KdaConvVerifyPlan plan;
  plan.options = options;
  plan.tensors = checked_kda_conv_verify(tensors, options, caller);
  const KdaConvVerifyTensors& t = plan.tensors;
  plan.launch.grid.x = 0;
  if (size(t.out) == 0) return plan;
  std::int64_t n = t.out.shape[0];
  plan.config = config_of(t, options);
  plan.config.tiling =
      tiling ? *tiling
             : choose_kda_tiling(device, options.variant, n,
                                 t.intermediate_states_buffer.has_value(), plan.config);
  plan.args = args_of(t);
  const bool whole_lines = plan.args.ssm_states.alignment_bytes % 16 == 0;
  KdaFetch& fetch = plan.config.tiling.fetch;
  if (fetch != KdaFetch::none && !whole_lines) fetch = KdaFetch::inputs;
  int cluster = plan.config.tiling.cluster;
  std::int64_t blocks = n * plan.config.q_heads * cluster;
  plan.launch.grid.x = rows::row_blocks(blocks, 1, caller);
  plan.launch.block.x = plan.config.tiling.warps * 32;
  plan.launch.cluster.x = cluster;
  plan.launch.dependent = true;
  return plan;
}

std::string KdaConvVerifyPlan::key() const {
  std::string text = "kda_conv_verify/1 " + to_string(config);
  for (const TensorArg* arg :
       {&args.mixed_qkv, &args.conv_weight, &args.conv_state, &args.conv_state_indices,
        &args.intermediate_state_indices, &args.a, &args.b, &args.A_log, &args.dt_bias,
        &args.ssm_states, &args.cache_indices, &args.out}) {
    text += " | " + to_string(*arg);
  }
  for (const std::optional<TensorArg>* arg :
       {&args.conv_bias, &args.intermediate_states_buffer, &args.intermediate_conv_window,
        &args.d_records, &args.k_records, &args.decay_records}) {
    text += " | " + rows::key_text(*arg);
  }
  return text;
}

Parameters KdaConvVerifyPlan::parameters() const {
  Parameters parameters;
  auto add = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, *view);
  };
  add(args.mixed_qkv, tensors.mixed_qkv);
  add(args.conv_weight, tensors.conv_weight);
  add(args.conv_bias, tensors.conv_bias);
  add(args.conv_state, tensors.conv_state);
  add(args.conv_state_indices, tensors.conv_state_indices);
  add(args.intermediate_state_indices, tensors.intermediate_state_indices);
  add(args.a, tensors.a);
  add(args.b, tensors.b);
  add(args.A_log, tensors.A_log);
  add(args.dt_bias, tensors.dt_bias);
  add(args.ssm_states, tensors.ssm_states);
  add(args.cache_indices, tensors.cache_indices);
  add(args.out, tensors.out);
  add(args.intermediate_states_buffer, tensors.intermediate_states_buffer);
  add(args.intermediate_conv_window, tensors.intermediate_conv_window);
  add(args.d_records, tensors.d_records);
  add(args.k_records, tensors.k_records);
  add(args.decay_records, tensors.decay_records);
  parameters.add(options.scale.value_or(1.0f / std::sqrt(static_cast<float>(config.k))));
  parameters.add(options.gate.lower_bound.value_or(0.0f));
  parameters.add(options.gate.softplus_beta);
  parameters.add(options.gate.softplus_threshold);
  return parameters;
}

void kda_conv_verify(const Stream& stream, const KdaConvVerifyTensors& tensors,
                     const KdaConvVerifyOptions& options, SourceLoc at) {
  KdaConvVerifyPlan plan =
      plan_kda_conv_verify(stream.device().properties(), tensors, options, {}, at);
  if (plan.launch.grid.x == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright

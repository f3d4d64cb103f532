// SPDX-License-Identifier: Apache-2.0
// The trace of kda_conv_verify.
#include "kernels/kda_conv_verify/verify_kernel.h"

#include <optional>
#include <string>

namespace tilewright {

Traced KdaConvVerifyPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{
      .name = std::string(args.d_records ? "kda_verify_compact_" : "kda_conv_verify_") +
              (config.tiling.variant == KdaVariant::small_batch ? "small" : "large") + "_" +
              std::to_string(config.tokens) + "x" + std::to_string(config.q_heads) + "x" +
              std::to_string(config.v_heads),
      .target = target,
      .block = {config.tiling.warps * 32, 1, 1},
      .min_blocks_per_sm = config.tiling.blocks_per_sm};
  if (config.tiling.cluster > 1) trace_options.cluster = {config.tiling.cluster, 1, 1};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& mixed, const Tensor& weight, const Maybe& bias,
                     const Tensor& conv_state, const Tensor& conv_indices,
                     const Tensor& snapshot_indices, const Tensor& a, const Tensor& b,
                     const Tensor& a_log, const Tensor& dt_bias, const Tensor& states,
                     const Tensor& cache_indices, const Tensor& out, const Maybe& snapshots,
                     const Maybe& windows, const Maybe& d_records, const Maybe& k_records,
                     const Maybe& decay_records, const Value& scale, const Value& lower_bound,
                     const Value& softplus_beta, const Value& softplus_threshold) {
    KdaConvVerifyParameters parameters{
        {mixed, weight, bias, conv_state, conv_indices, snapshot_indices, a, b, a_log, dt_bias,
         states, cache_indices, out, snapshots, windows, d_records, k_records, decay_records},
        scale,
        {lower_bound, softplus_beta, softplus_threshold}};
    if (config.tiling.variant == KdaVariant::small_batch) {
      trace_small_batch(config, parameters);
    } else {
      trace_large_batch(config, parameters);
    }
  };
  ScalarArg real{f32, {}};
  return tilewright::trace(
      trace_options, body, args.mixed_qkv, args.conv_weight, args.conv_bias, args.conv_state,
      args.conv_state_indices, args.intermediate_state_indices, args.a, args.b, args.A_log,
      args.dt_bias, args.ssm_states, args.cache_indices, args.out, args.intermediate_states_buffer,
      args.intermediate_conv_window, args.d_records, args.k_records, args.decay_records, real, real,
      real, real);
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Options, tensors and checks that kda_decode and kda_prefill share.
#include "kernels/kda_decode/delta_schema.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewright::kda_schema {

KdaDecodeOptions options_of(const Arguments& arguments) {
  KdaDecodeOptions options;
  options.scale = optional_real(arguments, "scale");
  options.gate = kda::gate_options(arguments);
  if (arguments.text("state_layout") == "kv") options.state_layout = StateLayout::kv;
  options.neg_eigval = arguments.boolean("neg_eigval");
  return options;
}

int chunk_of(const Arguments& arguments) {
  return static_cast<int>(std::min<std::int64_t>(arguments.integer("chunk"), 64));
}

KdaDecodeTensors common_tensors(const Arguments& arguments) {
  return {.q = arguments.tensor("q"),
          .k = arguments.tensor("k"),
          .v = arguments.tensor("v"),
          .a = arguments.tensor("a"),
          .b = arguments.tensor("b"),
          .A_log = optional_view(arguments, "A_log"),
          .dt_bias = optional_view(arguments, "dt_bias"),
          .out = arguments.find("out") == nullptr ? View{} : arguments.tensor("out")};
}

std::int64_t bytes_of(const KdaDecodeTensors& t) {
  std::int64_t requests = t.cu_seqlens ? t.cu_seqlens->shape[0] - 1 : t.q.shape[0];
  std::int64_t total = 0;
  for (const std::optional<View>* state : {&t.state, &t.final_state}) {
    if (!*state || (*state)->shape[0] == 0) continue;
    total += size_bytes(**state) / (*state)->shape[0] * requests;
  }
  for (const View* view : {&t.q, &t.k, &t.v, &t.a, &t.b, &t.out})
    total += size_bytes(*view);
  for (const std::optional<View>* view : {&t.A_log, &t.dt_bias, &t.indices, &t.snapshots})
    total += *view ? size_bytes(**view) : 0;
  return total;
}

void fill(const Problem& problem, std::vector<Array>& inputs) {
  std::int64_t heads = problem.size("HV"), k = problem.size("K");
  const bool keys_first = std::any_of(
      problem.options.begin(), problem.options.end(),
      [](const auto& option) { return option.first == "state_layout" && option.second == "kv"; });
  const bool log_decays =
      std::none_of(inputs.begin(), inputs.end(),
                   [](const Array& input) { return input.name == "A_log"; }) &&
      std::none_of(problem.options.begin(), problem.options.end(),
                   [](const auto& option) { return option.first == "lower_bound"; });
  for (Array& input : inputs) {
    if (input.name == "a" && log_decays) {
      std::vector<double> values = to_doubles(input);
      for (double& value : values)
        value = -std::abs(value);
      input = make_array(input.name, input.type, input.shape, values);
    }
    if (input.name == "cu_seqlens") {
      const auto tokens = static_cast<double>(problem.size("T"));
      input = make_array(input.name, input.type, {2}, std::vector<double>{0, tokens});
    }
    std::vector<std::int64_t> shape;
    if (input.name == "A_log") shape = {heads};
    if (input.name == "dt_bias") shape = {heads, k};
    if (input.name == "state") shape = {problem.size("S"), heads, problem.size("V"), k};
    if (input.name == "initial_state") {
      shape = {problem.size("N"), heads, problem.size("V"), k};
      if (keys_first) std::swap(shape[2], shape[3]);
    }
    if (input.name == "indices") shape = {problem.size("N")};
    if (shape.empty()) continue;
    input = make_array(input.name, input.type, shape);
    if (input.name != "indices") continue;
    std::vector<double> slots;
    for (std::int64_t n = 0; n < shape[0]; ++n)
      slots.push_back(static_cast<double>(n));
    input = make_array(input.name, input.type, shape, slots);
  }
}

}  // namespace tilewright::kda_schema

// SPDX-License-Identifier: Apache-2.0
// From config.json to facts; the names that families of models gave to the same thing side by side.
#include "cli/model_facts.h"

#include <cmath>

namespace tilewright::cli {
namespace {

std::string number(double value) { return Json(value).dump(); }

bool is_family(const ModelConfig& config, const char* prefix) {
  return config.text({"model_type"}, "").starts_with(prefix);
}

std::int64_t divided(const ModelConfig& config, std::int64_t value, std::int64_t ranks,
                     const char* what) {
  if (value % ranks == 0) return value / ranks;
  config.refuse("has " + std::to_string(value) + " " + what + ", which " + std::to_string(ranks) +
                " ranks cannot share");
}

std::string type_of(const ModelConfig& config) {
  const std::string type = config.text({"torch_dtype", "dtype"}, "bfloat16");
  if (type == "bfloat16") return "bf16";
  if (type == "float16") return "f16";
  if (type == "float32") return "f32";
  config.refuse("has torch_dtype " + type + "; known are bfloat16, float16, float32");
}

std::string activation_of(const ModelConfig& config) {
  if (is_family(config, "gpt_oss")) return "swigluoai_and_mul";
  const std::string name = config.text({"hidden_act", "hidden_activation"}, "silu");
  if (name == "silu" || name == "swish") return "silu_and_mul";
  if (name == "gelu") return "gelu_and_mul";
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return "gelu_tanh_and_mul";
  if (name == "relu2") return "relu2";
  config.refuse("has hidden_act " + name +
                "; known are silu, swish, gelu, gelu_pytorch_tanh, gelu_new, relu2");
}

/// Where model_type says that norms multiply by 1 + weight.
bool counts_from_one(const ModelConfig& config) {
  return is_family(config, "gemma") || is_family(config, "qwen3_next") ||
         is_family(config, "qwen3_5");
}

Attention attention_of(const ModelConfig& config, std::int64_t hidden, std::int64_t ranks) {
  const std::int64_t heads = config.required("num_attention_heads");
  const std::int64_t key_heads = config.integer({"num_key_value_heads"}).value_or(heads);
  const std::int64_t head_dim = config.integer({"head_dim"}).value_or(hidden / heads);
  const double part =
      config.inside("rope_parameters")
          .real({"partial_rotary_factor"}, config.real({"partial_rotary_factor"}, 1));
  const auto rotary = static_cast<std::int64_t>(static_cast<double>(head_dim) * part);
  const bool norm =
      config.flag({"use_qk_norm"}, is_family(config, "qwen3") || is_family(config, "gemma3"));
  const bool wide = config.text({"qk_norm_type"}, "") == "per_layer";
  return {.heads = divided(config, heads, ranks, "heads"),
          // Ranks beyond the heads of K hold copies.
          .key_heads = key_heads < ranks ? 1 : divided(config, key_heads, ranks, "heads of K"),
          .head_dim = head_dim,
          .rotary = config.integer({"rotary_dim"}).value_or(rotary),
          .head_norm = norm && !wide,
          .wide_norm = norm && wide,
          .interleaved = is_family(config, "glm") && !is_family(config, "glm4_moe")};
}

LatentAttention latent_of(const ModelConfig& config, std::int64_t ranks) {
  return {.heads = divided(config, config.required("num_attention_heads"), ranks, "heads"),
          .rotary = config.required("qk_rope_head_dim"),
          .query_rank = config.count({"q_lora_rank"}),
          .key_rank = config.required("kv_lora_rank"),
          .turns = !config.flag({"mla_use_nope"}, false),
          .interleaved = config.flag({"rope_interleave"}, true)};
}

std::optional<LinearAttention> linear_of(const ModelConfig& config, std::int64_t ranks) {
  const auto heads = [&](std::int64_t count) {
    return divided(config, count, ranks, "heads of linear attention");
  };
  if (config.has("linear_attn_config")) {
    const ModelConfig inside = config.inside("linear_attn_config");
    const std::int64_t count = heads(inside.required("num_heads"));
    const std::int64_t dim = inside.required("head_dim");
    return LinearAttention{Recurrence::kda, count, dim, count, dim};
  }
  if (config.has("linear_num_value_heads")) {
    return LinearAttention{Recurrence::gated_delta, heads(config.required("linear_num_key_heads")),
                           config.required("linear_key_head_dim"),
                           heads(config.required("linear_num_value_heads")),
                           config.required("linear_value_head_dim")};
  }
  if (config.times("attn_type_list", 0) > 0 ||
      config.times("layer_types", "linear_attention") > 0) {
    const std::int64_t count = config.required("num_attention_heads");
    const std::int64_t dim =
        config.integer({"head_dim"}).value_or(config.required("hidden_size") / count);
    return LinearAttention{Recurrence::lightning, heads(count), dim, heads(count), dim};
  }
  return std::nullopt;
}

std::optional<Experts> experts_of(const ModelConfig& config, std::int64_t ranks) {
  const auto count = config.integer({"num_experts", "n_routed_experts", "num_local_experts"});
  const auto chosen =
      config.integer({"num_experts_per_tok", "num_experts_per_token", "experts_per_token"});
  if (!count || !chosen) return std::nullopt;
  const std::int64_t width = divided(
      config,
      config.integer({"moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size"})
          .value_or(0),
      ranks, "as the width of an expert");
  if (width == 0) config.refuse("has no field moe_intermediate_size");
  const std::int64_t shared = config.count({"n_shared_experts", "num_shared_experts"}) * width;
  const std::string scoring =
      config.text({"scoring_func", "moe_router_activation_func"}, "softmax");
  const bool sigmoid = scoring == "sigmoid";
  return Experts{
      .count = *count,
      .chosen = *chosen,
      .width = width,
      .shared_width = divided(config, config.count({"shared_expert_intermediate_size"}), ranks,
                              "as the width of a shared expert") +
                      shared,
      .logits = sigmoid ? "f32" : type_of(config),
      .scoring = sigmoid                        ? "sigmoid"
                 : is_family(config, "gpt_oss") ? "softmax_selected"
                                                : "softmax",
      .bias = sigmoid,
      .renormalize = config.flag({"norm_topk_prob", "moe_renormalize"}, true),
      .groups =
          sigmoid ? std::max<std::int64_t>(config.count({"n_group", "num_expert_group"}), 1) : 1,
      .kept_groups = sigmoid ? std::max<std::int64_t>(config.count({"topk_group"}), 1) : 1,
      .scale = number(config.real({"routed_scaling_factor"}, 1))};
}

/// Layers whose width is intermediate_size: all without experts, else those that fields name.
std::optional<std::int64_t> dense_width_of(const ModelConfig& config, bool has_experts,
                                           std::int64_t ranks) {
  const bool some = !has_experts || config.count({"first_k_dense_replace"}) > 0 ||
                    config.count({"decoder_sparse_step"}) > 1 ||
                    config.count({"interleave_moe_layer_step"}) > 1;
  if (!some) return std::nullopt;
  const std::int64_t width =
      config.integer({"intermediate_size_mlp"}).value_or(config.required("intermediate_size"));
  return divided(config, width, ranks, "as intermediate_size");
}

std::optional<RotaryTable> table_of(const ModelConfig& config) {
  const bool newer = config.has("rope_parameters");
  const ModelConfig scaling = config.inside(newer ? "rope_parameters" : "rope_scaling");
  const double theta = scaling.real({"rope_theta"}, config.real({"rope_theta"}, 10000));
  const std::int64_t positions = config.integer({"max_position_embeddings"}).value_or(8192);
  const std::string kind = scaling.text({"rope_type", "type"}, "default");
  std::string options;
  const auto add = [&](const char* option, const char* field, double otherwise) {
    options += std::string(",") + option + "=" + number(scaling.real({field}, otherwise));
  };
  const double factor = scaling.real({"factor"}, 1);
  if (kind == "linear" || kind == "llama3" || kind == "yarn") {
    options = ",scaling=" + kind + ",factor=" + number(factor);
  } else if (kind == "dynamic") {
    options = ",scaling=dynamic_ntk,factor=" + number(factor);
  } else if (kind != "default" && kind != "mrope") {
    return std::nullopt;  // computed by the caller
  }
  if (kind == "llama3" || kind == "yarn" || kind == "dynamic") {
    add("original_max_position", "original_max_position_embeddings",
        static_cast<double>(positions) / (kind == "yarn" ? factor : 1));
  }
  if (kind == "llama3") {
    add("low_freq_factor", "low_freq_factor", 1);
    add("high_freq_factor", "high_freq_factor", 4);
  }
  if (kind == "yarn") {
    add("beta_fast", "beta_fast", 32);
    add("beta_slow", "beta_slow", 1);
    options += std::string(",truncate=") + (scaling.flag({"truncate"}, true) ? "true" : "false");
  }
  return RotaryTable{theta, options, positions};
}

Activations activations_of(const ModelConfig& config) {
  if (!config.has("quantization_config")) return Activations::plain;
  const ModelConfig how = config.inside("quantization_config");
  const std::string method = how.text({"quant_method"}, "");
  const std::string algorithm = how.text({"quant_algo"}, "");
  if (algorithm == "NVFP4") return Activations::nvfp4;
  if (method == "fp8" && how.has("weight_block_size")) return Activations::fp8_block;
  if (method == "fp8" || algorithm == "FP8") {
    return how.text({"activation_scheme"}, "static") == "dynamic" ? Activations::fp8_token
                                                                  : Activations::fp8_tensor;
  }
  return Activations::plain;  // weights alone: mxfp4, awq, gptq
}

}  // namespace

Model read_model(const ModelConfig& config, std::int64_t ranks) {
  const std::int64_t hidden = config.required("hidden_size");
  if (!config.has("rms_norm_eps") &&
      (config.has("layer_norm_eps") || config.has("layer_norm_epsilon"))) {
    config.refuse("has layer_norm_eps; models with root-mean-square norms are known");
  }
  const bool latent = config.has("kv_lora_rank");
  Model model{.type = type_of(config),
              .hidden = hidden,
              .eps = number(config.real({"rms_norm_eps", "norm_eps"}, 1e-6)),
              .weight_bias = counts_from_one(config) ? "1" : "0",
              .embedding_scale =
                  is_family(config, "gemma") ? number(std::sqrt(static_cast<double>(hidden))) : "1",
              .activation = activation_of(config),
              .limit = config.has("swiglu_limit") ? number(config.real({"swiglu_limit"}, 7)) : "",
              .dense_width = {},
              .attention = {},
              .latent = {},
              .linear = linear_of(config, ranks),
              .experts = experts_of(config, ranks),
              .rotary = table_of(config),
              .activations = activations_of(config)};
  model.dense_width = dense_width_of(config, model.experts.has_value(), ranks);
  if (latent) {
    model.latent = latent_of(config, ranks);
    if (!model.latent->turns) model.rotary.reset();
  } else {
    model.attention = attention_of(config, hidden, ranks);
  }
  return model;
}

}  // namespace tilewright::cli

// SPDX-License-Identifier: Apache-2.0
// From a model's facts to operators and problems.
#include "cli/model.h"

#include "cli/model_facts.h"

namespace tilewright::cli {
namespace {

/// The kernels depend neither on the rows of a table nor on the slots of states.
constexpr int kTableRows = 64;
constexpr int kSlots = 64;

/// "T=1,H=4096" from pairs.
class ProblemText {
 public:
  ProblemText& size(const char* name, std::int64_t value) {
    return item(name, std::to_string(value));
  }
  ProblemText& item(const char* name, const std::string& value) {
    text_ += (text_.empty() ? "" : ",") + std::string(name) + "=" + value;
    return *this;
  }
  /// An option that is left out where it has its default.
  ProblemText& option(const char* name, const std::string& value, const char* otherwise) {
    return value == otherwise ? *this : item(name, value);
  }
  operator std::string() const { return text_; }  // NOLINT(google-explicit-constructor)

 private:
  std::string text_;
};

/// The work of one number of tokens.
class Step {
 public:
  Step(const Model& model, std::int64_t tokens, std::vector<Work>& work)
      : m_(model), tokens_(tokens), work_(work) {}

  void add() {
    add("embedding", rows(m_.hidden)
                         .size("V", kTableRows)
                         .item("table", m_.type)
                         .option("scale", m_.embedding_scale, "1"));
    add_norm(m_.hidden);
    add_fused("fused_add_rms_norm",
              normed(rows(m_.hidden).item("x", m_.type).item("residual", m_.type)));
    add_quantized(m_.hidden);
    if (m_.attention) add_attention(*m_.attention);
    if (m_.latent) add_latent(*m_.latent);
    if (m_.linear) add_linear(*m_.linear);
    if (m_.dense_width) add_activation(tokens_, *m_.dense_width);
    if (m_.experts) add_experts(*m_.experts);
  }

 private:
  void add(const char* op, const ProblemText& problem) { work_.push_back({op, problem}); }
  ProblemText rows(std::int64_t width) const {
    return ProblemText().size("T", tokens_).size("H", width);
  }
  ProblemText normed(ProblemText problem) const {
    return problem.item("w", m_.type)
        .item("eps", m_.eps)
        .option("weight_bias", m_.weight_bias, "0");
  }
  void add_norm(std::int64_t width) {
    add_fused("rms_norm", normed(rows(width).item("x", m_.type)));
  }

  /// With the model's format in the option `option`, and what it takes besides.
  ProblemText coded(ProblemText problem, const char* option) const {
    switch (m_.activations) {
      case Activations::plain:
        return problem;
      case Activations::fp8_block:
        return problem.item(option, "fp8_block");
      case Activations::fp8_token:
        return problem.item(option, "fp8_token");
      case Activations::fp8_tensor:
        return problem.item("scale", "f32").item(option, "fp8_tensor");
      case Activations::nvfp4:
        break;
    }
    return problem.item("encode_scale", "f32")
        .item(option, "nvfp4")
        .item("scale_layout", "swizzle_128x4");
  }

  /// What goes into a matrix product, quantised on its own.
  void add_quantized(std::int64_t width, std::int64_t times = 1) {
    if (m_.activations == Activations::plain) return;
    ProblemText problem = ProblemText().size("T", tokens_ * times).size("H", width);
    add("quantize", coded(problem.item("x", m_.type), "format"));
  }

  /// What makes numbers that may go into a matrix product: as numbers, and as codes.
  void add_fused(const char* op, const ProblemText& problem) {
    add(op, problem);
    if (m_.activations != Activations::plain) add(op, coded(problem, "quant"));
  }

  void add_turned(std::int64_t heads, std::int64_t key_heads, std::int64_t dim, std::int64_t rotary,
                  bool norm, bool interleaved) {
    ProblemText problem;
    problem.size("T", tokens_).size("HQ", heads).size("HK", key_heads).size("D", dim);
    problem.size("P", kTableRows).size("R", rotary).item("q", m_.type).item("k", m_.type);
    problem.item("positions", "s64").item("cos_sin", "f32");
    if (interleaved) problem.item("style", "interleaved");
    if (norm) {
      problem.item("q_weight", m_.type).item("k_weight", m_.type).item("eps", m_.eps);
      problem.option("weight_bias", m_.weight_bias, "0");
    }
    add(norm ? "qk_norm_rope" : "rope", problem);
  }

  void add_attention(const Attention& a) {
    if (a.wide_norm) {
      for (const std::int64_t heads : {a.heads, a.key_heads})
        add("rms_norm", normed(rows(heads * a.head_dim).item("x", m_.type)));
    }
    if (a.rotary > 0)
      add_turned(a.heads, a.key_heads, a.head_dim, a.rotary, a.head_norm, a.interleaved);
    ProblemText cache;
    cache.size("T", tokens_).size("N", tokens_).size("HK", a.key_heads).size("D", a.head_dim);
    cache.size("DV", a.head_dim).item("key", m_.type).item("value", m_.type);
    add("reshape_and_cache", cache.item("key_cache", m_.type).item("value_cache", m_.type));
    add_quantized(a.heads * a.head_dim);
  }

  void add_latent(const LatentAttention& a) {
    if (a.query_rank > 0) {
      add_norm(a.query_rank);
      add_quantized(a.query_rank);
    }
    add_norm(a.key_rank);
    if (a.turns) add_turned(a.heads, 1, a.rotary, a.rotary, false, a.interleaved);
  }

  void add_linear(const LinearAttention& a) {
    const auto heads = [&](ProblemText problem) {
      return problem.size("H", a.heads)
          .size("K", a.key_dim)
          .size("HV", a.value_heads)
          .size("V", a.value_dim);
    };
    const auto kda = [&](std::int64_t requests, std::int64_t tokens) {
      return heads(ProblemText().size("N", requests).size("T", tokens))
          .item("A_log", "f32")
          .item("dt_bias", "f32");
    };
    switch (a.kind) {
      case Recurrence::kda:
        add("kda_decode", kda(tokens_, 1).size("S", kSlots).item("indices", "s32"));
        add("kda_prefill", kda(1, tokens_));
        return;
      case Recurrence::gated_delta:
        add("gated_delta_rule", heads(ProblemText().size("TOKENS", tokens_))
                                    .size("S", kSlots)
                                    .size("N", tokens_)
                                    .item("indices", "s32"));
        add("gated_delta_rule", heads(ProblemText().size("TOKENS", tokens_))
                                    .size("S", kSlots)
                                    .size("N", 1)
                                    .item("indices", "s32")
                                    .item("mode", "prefill"));
        return;
      case Recurrence::lightning:
        add("lightning_attention", heads(ProblemText().size("T", tokens_))
                                       .size("S", kSlots)
                                       .size("N", tokens_)
                                       .item("state", "f32")
                                       .item("indices", "s32"));
        return;
    }
  }

  void add_activation(std::int64_t tokens, std::int64_t width) {
    ProblemText problem;
    problem.size("T", tokens).size("N", 2 * width).item("x", m_.type);
    if (m_.activation == "swigluoai_and_mul") problem.item("layout", "interleaved");
    if (m_.limit.empty() || m_.activation == "relu2") {
      add_fused(m_.activation.c_str(), problem);
    } else if (m_.activation == "swigluoai_and_mul") {
      add_fused(m_.activation.c_str(), problem.item("limit", m_.limit));
    } else {  // a config does not say where its model's code cuts
      problem.item("limit", m_.limit);
      for (const char* where : {"before", "after"})
        add_fused(m_.activation.c_str(), ProblemText(problem).item("clamp_gate", where));
    }
    add_quantized(width, tokens / tokens_);
  }

  void add_experts(const Experts& e) {
    ProblemText topk;
    topk.size("T", tokens_).size("E", e.count).size("k", e.chosen).item("logits", e.logits);
    if (e.bias) topk.item("bias", "f32");
    topk.option("scoring", e.scoring, "softmax").option("scale", e.scale, "1.0");
    topk.option("groups", std::to_string(e.groups), "1");
    topk.option("topk_group", std::to_string(e.kept_groups), "1");
    if (!e.renormalize) topk.item("renormalize", "false");
    add("moe_topk", topk);
    const auto rows = [&] {
      return ProblemText().size("T", tokens_).size("K", e.chosen).size("H", m_.hidden);
    };
    ProblemText dispatch = rows().size("experts", e.count);
    if (m_.activations == Activations::fp8_block) {
      dispatch.size("G", m_.hidden / 128).item("x", "e4m3").item("scales", "f32");
    } else {
      dispatch.item("x", m_.type);
    }
    add("moe_dispatch", dispatch);
    ProblemText combine = rows().size("M", tokens_ * e.chosen).item("y", m_.type);
    if (e.shared_width > 0) combine.item("shared", m_.type);
    add("moe_combine", combine);
    add_activation(tokens_ * e.chosen, e.width);
    if (e.shared_width > 0) add_activation(tokens_, e.shared_width);
  }

  const Model& m_;
  std::int64_t tokens_;
  std::vector<Work>& work_;
};

void add_table(const Model& m, std::vector<Work>& work) {
  const std::int64_t rotary = m.latent ? m.latent->rotary : m.attention->rotary;
  if (rotary == 0) return;
  const std::int64_t positions = m.rotary->positions;
  work.push_back({"rope_table", "theta=" + Json(m.rotary->theta).dump() +
                                    ",rotary_dim=" + std::to_string(rotary) + ",max_position=" +
                                    std::to_string(positions) + m.rotary->scaling});
}

}  // namespace

std::vector<Work> work_of_model(const std::string& path, std::span<const std::int64_t> tokens,
                                std::int64_t ranks) {
  const Model model = read_model(ModelConfig(path), ranks);
  std::vector<Work> work;
  if (model.rotary) add_table(model, work);
  for (const std::int64_t count : tokens)
    Step(model, count, work).add();
  return work;
}

}  // namespace tilewright::cli

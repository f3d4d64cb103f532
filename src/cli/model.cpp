// SPDX-License-Identifier: Apache-2.0
// Reads the fields of config.json that shapes come from.
#include "cli/model.h"

#include "cli/json.h"
#include "tilewright/error.h"

#include <fstream>
#include <optional>

namespace tilewright::cli {
namespace {

/// The kernels do not depend on how many rows a table has.
constexpr int kTableRows = 64;

class Config {
 public:
  explicit Config(std::string path) : path_(std::move(path)) {
    std::ifstream stream(path_, std::ios::binary);
    if (!stream) refuse("cannot be read");
    json_ = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
    if (!json_.is_object()) refuse("is not a JSON object");
    if (json_.contains("text_config") && json_["text_config"].is_object()) {
      json_ = Json(json_["text_config"]);  // of models with more than text
    }
  }

  /// The first of these fields that is there.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      const auto found = json_.find(name);
      if (found == json_.end() || found->is_null()) continue;
      if (!found->is_number_integer() || found->get<std::int64_t>() < 1) {
        refuse(std::string("field ") + name + " is " + found->dump() + "; it must be a count");
      }
      return found->get<std::int64_t>();
    }
    return std::nullopt;
  }
  std::int64_t required(const char* name) const {
    if (const std::optional<std::int64_t> value = integer({name})) return *value;
    refuse(std::string("has no field ") + name);
  }
  double real(const char* name, double otherwise) const {
    const auto found = json_.find(name);
    return found != json_.end() && found->is_number() ? found->get<double>() : otherwise;
  }
  std::string text(std::initializer_list<const char*> names, const std::string& otherwise) const {
    for (const char* name : names) {
      const auto found = json_.find(name);
      if (found != json_.end() && found->is_string()) return found->get<std::string>();
    }
    return otherwise;
  }
  bool flag(const char* name, bool otherwise) const {
    const auto found = json_.find(name);
    return found != json_.end() && found->is_boolean() ? found->get<bool>() : otherwise;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::user, "model: " + path_ + ": " + what);
  }

 private:
  std::string path_;
  Json json_;
};

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
  operator std::string() const { return text_; }  // NOLINT(google-explicit-constructor)

 private:
  std::string text_;
};

std::string type_of(const Config& config) {
  const std::string type = config.text({"torch_dtype", "dtype"}, "bfloat16");
  if (type == "bfloat16") return "bf16";
  if (type == "float16") return "f16";
  if (type == "float32") return "f32";
  config.refuse("has torch_dtype " + type + "; known are bfloat16, float16, float32");
}

struct Model {
  explicit Model(const Config& config)
      : type(type_of(config)),
        hidden(config.required("hidden_size")),
        heads(config.required("num_attention_heads")),
        key_heads(config.integer({"num_key_value_heads"}).value_or(heads)),
        head_dim(config.integer({"head_dim"}).value_or(hidden / heads)),
        rotary(static_cast<std::int64_t>(static_cast<double>(head_dim) *
                                         config.real("partial_rotary_factor", 1))),
        intermediate(config.integer({"intermediate_size"})),
        experts(config.integer({"num_experts", "n_routed_experts", "num_local_experts"})),
        chosen(config.integer({"num_experts_per_tok", "num_experts_per_token"})),
        expert_intermediate(config.integer({"moe_intermediate_size"})),
        eps(Json(config.real("rms_norm_eps", 1e-6)).dump()),
        activation(config.text({"hidden_act", "hidden_activation"}, "silu")),
        scoring(config.text({"scoring_func"}, "softmax")),
        groups(config.integer({"n_group"}).value_or(1)),
        kept_groups(config.integer({"topk_group"}).value_or(1)),
        scale(Json(config.real("routed_scaling_factor", 1)).dump()),
        renormalize(config.flag("norm_topk_prob", true)),
        head_norm(config.text({"model_type"}, "").rfind("qwen3", 0) == 0) {}

  std::string type;
  std::int64_t hidden, heads, key_heads, head_dim, rotary;
  std::optional<std::int64_t> intermediate, experts, chosen, expert_intermediate;
  std::string eps, activation, scoring;
  std::int64_t groups, kept_groups;
  std::string scale;
  bool renormalize;
  bool head_norm;  ///< Q and K are normalised head by head
};

void add_rows(const Model& m, std::int64_t tokens, std::vector<Work>& work) {
  const auto rows = [&] { return ProblemText().size("T", tokens).size("H", m.hidden); };
  work.push_back({"embedding", rows().size("V", kTableRows).item("table", m.type)});
  work.push_back({"rms_norm", rows().item("x", m.type).item("w", m.type).item("eps", m.eps)});
  work.push_back(
      {"fused_add_rms_norm",
       rows().item("x", m.type).item("residual", m.type).item("w", m.type).item("eps", m.eps)});
}

void add_heads(const Model& m, std::int64_t tokens, std::vector<Work>& work) {
  ProblemText problem;
  problem.size("T", tokens).size("HQ", m.heads).size("HK", m.key_heads).size("D", m.head_dim);
  problem.size("P", kTableRows).size("R", m.rotary).item("q", m.type).item("k", m.type);
  problem.item("positions", "s64").item("cos_sin", "f32");
  if (m.head_norm) {
    problem.item("q_weight", m.type).item("k_weight", m.type).item("eps", m.eps);
  }
  work.push_back({m.head_norm ? "qk_norm_rope" : "rope", problem});
}

void add_activation(const Config& config, const Model& m, std::int64_t tokens, std::int64_t width,
                    std::vector<Work>& work) {
  const char* op = m.activation == "silu" || m.activation == "swish" ? "silu_and_mul"
                   : m.activation == "gelu"                          ? "gelu_and_mul"
                   : m.activation == "gelu_pytorch_tanh"             ? "gelu_tanh_and_mul"
                                                                     : nullptr;
  if (op == nullptr) {
    config.refuse("has hidden_act " + m.activation +
                  "; known are silu, swish, gelu, gelu_pytorch_tanh");
  }
  work.push_back({op, ProblemText().size("T", tokens).size("N", 2 * width).item("x", m.type)});
}

void add_experts(const Model& m, std::int64_t tokens, std::vector<Work>& work) {
  const bool sigmoid = m.scoring == "sigmoid";
  ProblemText topk;
  topk.size("T", tokens).size("E", *m.experts).size("k", *m.chosen).item("logits", m.type);
  if (sigmoid) {
    topk.item("bias", "f32").item("scoring", "sigmoid").item("scale", m.scale);
    topk.size("groups", m.groups).size("topk_group", m.kept_groups);
  }
  topk.item("renormalize", m.renormalize ? "true" : "false");
  work.push_back({"moe_topk", topk});
  const auto rows = [&] {
    return ProblemText().size("T", tokens).size("K", *m.chosen).size("H", m.hidden);
  };
  work.push_back({"moe_dispatch", rows().item("x", m.type).size("experts", *m.experts)});
  work.push_back({"moe_combine", rows().size("M", tokens * *m.chosen).item("y", m.type)});
}

}  // namespace

std::vector<Work> work_of_model(const std::string& path, std::span<const std::int64_t> tokens) {
  const Config config(path);
  const Model model(config);
  std::vector<Work> work;
  for (const std::int64_t count : tokens) {
    add_rows(model, count, work);
    add_heads(model, count, work);
    if (model.experts && model.chosen) {
      add_experts(model, count, work);
      const std::int64_t width =
          model.expert_intermediate.value_or(model.intermediate.value_or(model.hidden));
      add_activation(config, model, count * *model.chosen, width, work);
    } else {
      add_activation(config, model, count, config.required("intermediate_size"), work);
    }
  }
  return work;
}

}  // namespace tilewright::cli

// SPDX-License-Identifier: Apache-2.0
// The host side of qk_norm, qk_norm_rope and rope: checks, configuration, grid.
#include "kernels/qk_norm_rope/qk_norm_rope.h"
#include "kernels/rows/row_arg.h"
#include "kernels/rows/row_shape.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxHead = 1024;  // elements
constexpr std::int64_t kMaxHeads = 65536;

struct Checks {
  const QkTensors& t;
  const QkOptions& options;
  rows::Caller caller;

  [[noreturn]] void fail(const std::string& what) const { caller.refuse(what); }

  void heads(const View& view, const char* which) const {
    std::string what = std::string(which) + " is " + to_string(view);
    if (view.rank != 3) fail(what + "; it must have the modes [T, heads, D]");
    if (view.type != t.q.type)
      fail(what + "; it must have q's type " + std::string(name(t.q.type)));
    if (view.shape[2] != t.q.shape[2] || view.shape[0] != t.q.shape[0])
      fail(what + " and q " + to_string(t.q) + "; T and D must be equal");
    if (view.shape[2] > 1 && view.stride[2] != 1) fail(what + "; its last stride must be 1");
    if (view.shape[1] > kMaxHeads)
      fail(what + "; it may have " + std::to_string(kMaxHeads) + " heads at most");
  }

  void shapes() const {
    rows::check_real(t.q, "q", caller);
    heads(t.q, "q");
    heads(t.k, "k");
    heads(t.q_out, "q_out");
    heads(t.k_out, "k_out");
    if (t.q.shape[2] < 1 || t.q.shape[2] > kMaxHead) {
      fail("q is " + to_string(t.q) + "; D must be 1 to " + std::to_string(kMaxHead));
    }
    if (t.q_out.shape[1] != t.q.shape[1] || t.k_out.shape[1] != t.k.shape[1])
      fail("q_out and k_out must have as many heads as q and k");
    for (const std::optional<View>* weight : {&t.q_weight, &t.k_weight}) {
      const char* which = weight == &t.q_weight ? "q_weight" : "k_weight";
      if (!*weight) continue;
      rows::check_like_or_f32(**weight, which, t.q.type, "q", caller);
      rows::check_vector(**weight, which, t.q.shape[2], caller);
    }
    if (t.q_weight && t.k_weight && t.q_weight->type != t.k_weight->type) {
      fail("q_weight has type " + std::string(name(t.q_weight->type)) + " and k_weight " +
           std::string(name(t.k_weight->type)) + "; the types must be equal");
    }
  }

  void rope() const {
    if (options.style == RopeStyle::none) return;
    if (!t.positions || t.cos_sin.has_value() == t.inv_freq.has_value())
      fail("positions and either cos_sin or inv_freq are needed for the rotation");
    const View& positions = *t.positions;
    if (!rows::is_index_type(positions.type))
      fail("positions has type " + std::string(name(positions.type)) + "; it must be s32 or s64");
    rows::check_vector(positions, "positions", t.q.shape[0], caller);
    if (options.style == RopeStyle::interleaved && t.q.shape[2] % 2 != 0)
      fail("q is " + to_string(t.q) + "; D must be even for the interleaved style");
    if (t.inv_freq) {
      frequencies(*t.inv_freq);
      return;
    }
    const View& table = *t.cos_sin;
    rows::check_real(table, "cos_sin", caller);
    std::string what = "cos_sin is " + to_string(table);
    bool fits = table.rank == 2 && table.shape[1] >= 2 && table.shape[1] % 2 == 0 &&
                table.shape[1] <= t.q.shape[2];
    if (!fits) {
      fail(what + "; it must have rows of an even number of elements, at most D = " +
           std::to_string(t.q.shape[2]));
    }
    if (table.shape[0] == 0 && t.q.shape[0] > 0) fail(what + "; it must have rows");
    if (table.stride[1] != 1) fail(what + "; its last stride must be 1");
  }

  void frequencies(const View& view) const {
    rows::check_type(view, "inv_freq", f32, caller);
    const bool fits = view.rank == 1 && view.shape[0] >= 1 && 2 * view.shape[0] <= t.q.shape[2] &&
                      (view.shape[0] == 1 || view.stride[0] == 1);
    if (!fits) {
      fail("inv_freq is " + to_string(view) + "; it must have 1 to " +
           std::to_string(t.q.shape[2] / 2) + " contiguous elements, half of D at most");
    }
  }

  void same_or_apart(const View& in, const char* in_name, const View& out,
                     const char* out_name) const {
    if (in == out || !overlap(in, out)) return;
    fail(std::string(in_name) + " and " + out_name + " overlap without being the same; give " +
         out_name + " memory of its own, or " + in_name + " itself");
  }
  void apart(const View& a, const char* a_name, const View& b, const char* b_name) const {
    if (overlap(a, b))
      fail(std::string(a_name) + " and " + b_name + " overlap; they must be apart");
  }

  void values_apart() const {
    if (!t.v) return;
    apart(*t.v, "v", t.q_out, "q_out");
    apart(*t.v, "v", t.k_out, "k_out");
  }

  void memory() const {
    rows::check_distinct(t.q_out, "q_out", caller);
    rows::check_distinct(t.k_out, "k_out", caller);
    values_apart();
    same_or_apart(t.q, "q", t.q_out, "q_out");
    same_or_apart(t.k, "k", t.k_out, "k_out");
    apart(t.q, "q", t.k_out, "k_out");
    apart(t.k, "k", t.q_out, "q_out");
    apart(t.q_out, "q_out", t.k_out, "k_out");
    auto read_only = [&](const std::optional<View>& view, const char* which) {
      if (!view) return;
      rows::check_apart(*view, which, t.q_out, "q_out", caller);
      rows::check_apart(*view, which, t.k_out, "k_out", caller);
    };
    read_only(t.q_weight, "q_weight");
    read_only(t.k_weight, "k_weight");
    read_only(t.positions, "positions");
    read_only(t.cos_sin, "cos_sin");
    read_only(t.inv_freq, "inv_freq");
    read_only(t.slot_mapping, "slot_mapping");
    read_only(t.k_scale, "k_scale");
    read_only(t.v_scale, "v_scale");
  }

  void numbers() const {
    rows::check_norm_numbers(options.eps, options.weight_bias, caller);
    if (!std::isfinite(options.attention_factor)) {
      fail("attention_factor=" + rows::number_text(options.attention_factor) +
           "; it must be finite");
    }
  }
};

/// The most elements, up to 16 bytes, that divide the parts of a head: by the shape alone, so that
/// the order of a sum is the same for all addresses. Misaligned accesses are split.
int vector_elems(const QkConfig& config, Type type) {
  int elems = 16 / bytes(type);
  int part = config.style == RopeStyle::neox ? config.rotary / 2 : config.rotary;
  while (part % elems != 0 || (config.d - config.rotary) % elems != 0)
    elems /= 2;
  return elems;
}

/// Bytes that divide the addresses of all accesses.
int alignment_bytes(const QkTensors& t, int vector_elems) {
  std::int64_t size = bytes(t.q.type);
  std::int64_t alignment = vector_elems * size;
  for (const View* view :
       {&t.q, &t.k, &t.q_out, &t.k_out, t.v ? &*t.v : &t.k, t.v_out ? &*t.v_out : &t.k}) {
    auto lower = [&](std::int64_t offset_bytes) {
      while (offset_bytes % alignment != 0)
        alignment /= 2;
    };
    if (size_bytes(*view) == 0) continue;
    lower(static_cast<std::int64_t>(view->address & 15));
    if (view->shape[0] > 1) lower(view->stride[0] * size);
    if (view->shape[1] > 1) lower(view->stride[1] * size);
  }
  return static_cast<int>(alignment);
}

const char* style_text(RopeStyle style) {
  return style == RopeStyle::neox ? "neox" : style == RopeStyle::interleaved ? "interleaved" : "";
}

QkArguments<TensorArg> args_of(const QkTensors& t) {
  auto fixed = [](const std::optional<View>& view) {
    return view ? std::optional(tensor_arg(*view)) : std::nullopt;
  };
  auto rows_of = [](const std::optional<View>& view) {
    return view ? std::optional(rows::rows_arg(*view)) : std::nullopt;
  };
  return {rows::rows_arg(t.q),     rows::rows_arg(t.k),     fixed(t.q_weight),
          fixed(t.k_weight),       rows_of(t.positions),    rows_of(t.cos_sin),
          rows::rows_arg(t.q_out), rows::rows_arg(t.k_out), rows_of(t.v),
          rows_of(t.slot_mapping), rows_of(t.key_cache),    rows_of(t.value_cache),
          fixed(t.k_scale),        fixed(t.v_scale),        fixed(t.inv_freq),
          rows_of(t.v_out)};
}

}  // namespace

std::string to_string(const QkConfig& c) {
  return "hq=" + std::to_string(c.q_heads) + " hk=" + std::to_string(c.k_heads) +
         (c.v_heads > 0 ? "+v" : "") + " d=" + std::to_string(c.d) +
         " r=" + std::to_string(c.rotary) + " v=" + std::to_string(c.vector_elems) +
         " l=" + std::to_string(c.lanes) + " a=" + std::to_string(c.alignment_bytes) +
         " t=" + std::to_string(c.threads) + "x" + std::to_string(c.heads) + "x" +
         std::to_string(c.resident) + (c.norm ? " norm " : " ") + style_text(c.style) +
         (c.round_between ? " round" : "") + (c.has_weight_bias ? " weight_bias" : "") +
         (c.has_attention_factor ? " attention_factor" : "") + (c.wide_index ? " wide" : "") +
         (c.loads == QkLoads::early    ? " early"
          : c.loads == QkLoads::angles ? " angles"
                                       : "") +
         (c.apart ? " apart" : "");
}

QkPlan plan_qk(std::string_view op, const DeviceProperties& device, const QkTensors& tensors,
               const QkOptions& options, SourceLoc at) {
  QkPlan plan;
  plan.op = op;
  plan.options = options;
  plan.tensors = tensors;
  rows::Caller caller{op, at};
  Checks checks{plan.tensors, options, caller};
  checks.shapes();
  checks.rope();
  check_values(plan.tensors, options.cache_layout, caller);
  checks.memory();
  checks.numbers();
  QkConfig& config = plan.config;
  config.norm = options.norm;
  config.style = options.style;
  config.round_between = options.round_between;
  config.has_weight_bias = options.weight_bias != 0;
  config.q_heads = static_cast<int>(tensors.q.shape[1]);
  config.k_heads = static_cast<int>(tensors.k.shape[1]);
  if (tensors.v) config.v_heads = config.k_heads;
  config.d = static_cast<int>(tensors.q.shape[2]);
  config.has_attention_factor = options.attention_factor != 1;
  if (options.style != RopeStyle::none) {
    config.rotary = static_cast<int>(tensors.inv_freq ? 2 * tensors.inv_freq->shape[0]
                                                      : tensors.cos_sin->shape[1]);
  }
  config.vector_elems = vector_elems(config, tensors.q.type);
  const bool codes = tensors.key_cache && (tensors.key_cache->type != tensors.q.type ||
                                           tensors.value_cache->type != tensors.q.type);
  choose_threads(op, device, tensors, codes, config);
  config.alignment_bytes = alignment_bytes(tensors, config.vector_elems);
  std::int64_t head_count = tensors.q.shape[0] * config.heads_of_token();
  constexpr std::int64_t kMany = std::int64_t{1} << 30;
  config.wide_index = head_count > kMany || (tensors.cos_sin && tensors.cos_sin->shape[0] > kMany);
  plan.args = args_of(plan.tensors);
  plan.launch.grid.x =
      rows::row_blocks(head_count / config.heads, config.threads / config.lanes, caller);
  if (config.apart) {
    plan.launch.grid.x = config.heads_of_token() / (config.threads / config.lanes * config.heads);
    plan.launch.grid.y = static_cast<int>(tensors.q.shape[0]);
  }
  plan.launch.block.x = config.threads;
  return plan;
}

std::string QkPlan::key() const {
  std::string text = op + "/7 " + to_string(config);
  for (const TensorArg* arg : {&args.q, &args.k, &args.q_out, &args.k_out})
    text += " | " + to_string(*arg);
  for (const std::optional<TensorArg>* arg :
       {&args.q_weight, &args.k_weight, &args.positions, &args.cos_sin, &args.v, &args.slot_mapping,
        &args.key_cache, &args.value_cache, &args.k_scale, &args.v_scale}) {
    text += " | " + rows::key_text(*arg);
  }
  if (args.inv_freq) text += " | frequencies " + to_string(*args.inv_freq);
  if (args.v_out) text += " | v_out " + to_string(*args.v_out);
  return text;
}

Parameters QkPlan::parameters() const {
  Parameters parameters;
  auto add = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, *view);
  };
  add(args.q, tensors.q);
  add(args.k, tensors.k);
  add(args.q_weight, tensors.q_weight);
  add(args.k_weight, tensors.k_weight);
  add(args.positions, tensors.positions);
  add(args.cos_sin, tensors.cos_sin);
  add(args.q_out, tensors.q_out);
  add(args.k_out, tensors.k_out);
  add(args.v, tensors.v);
  add(args.slot_mapping, tensors.slot_mapping);
  add(args.key_cache, tensors.key_cache);
  add(args.value_cache, tensors.value_cache);
  add(args.k_scale, tensors.k_scale);
  add(args.v_scale, tensors.v_scale);
  parameters.add(options.eps);
  parameters.add(options.weight_bias);
  add(args.inv_freq, tensors.inv_freq);
  if (config.has_attention_factor) parameters.add(options.attention_factor);
  add(args.v_out, tensors.v_out);
  return parameters;
}

void launch_qk(const Stream& stream, const QkPlan& plan, SourceLoc at) {
  if (plan.launch.grid.x == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

namespace {

/// Of an operator that norms, turns, or both.
void run_qk(std::string_view op, const Stream& stream, const QkTensors& tensors, QkOptions options,
            SourceLoc at) {
  options.norm = op != "rope";
  if (op == "qk_norm") {
    options.style = RopeStyle::none;
  } else if (options.style == RopeStyle::none) {
    options.style = RopeStyle::neox;
  }
  launch_qk(stream, plan_qk(op, stream.device().properties(), tensors, options, at), at);
}

}  // namespace

void qk_norm(const Stream& stream, const QkTensors& tensors, const QkOptions& options,
             SourceLoc at) {
  run_qk("qk_norm", stream, tensors, options, at);
}

void qk_norm_rope(const Stream& stream, const QkTensors& tensors, const QkOptions& options,
                  SourceLoc at) {
  run_qk("qk_norm_rope", stream, tensors, options, at);
}

void rope(const Stream& stream, const QkTensors& tensors, const QkOptions& options, SourceLoc at) {
  run_qk("rope", stream, tensors, options, at);
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Lesson 17: a checkpoint's tensors through a transformer layer, by all operators but its products.
//
//   ids -- embedding --> x -- rms_norm --> h             then products make q, k and v of h
//   q, k, v -- qk_norm_rope --> q, k, pages of a cache   then attention
//   its output, x -- fused_add_rms_norm --> x, h         then a product makes gate and up
//   gate, up -- silu_and_mul --> z                       which the last product takes
//
// Arguments: a device, a .safetensors file with Qwen3's names, a layer. Without a file a small one
// is made. In place of what a product makes stands its input, repeated to that width.
#include "kernels/fused_add_rms_norm/fused_add_rms_norm.h"
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/qk_norm_rope/qk_norm_rope.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope_table/rope_table.h"
#include "kernels/row_gather/row_gather.h"
#include "layer_check.h"

#include <cstdio>
#include <numeric>
#include <span>

namespace tw = tilewright;
using lesson::Placed;

constexpr std::int64_t kTokens = 12;

struct Layer {
  Layer(const tw::Device& device, const tw::SafetensorsFile& file, const std::string& layer)
      : table(device, file.read("model.embed_tokens.weight")),
        before(device, file.read(layer + "input_layernorm.weight")),
        between(device, file.read(layer + "post_attention_layernorm.weight")),
        q_norm(device, file.read(layer + "self_attn.q_norm.weight")),
        k_norm(device, file.read(layer + "self_attn.k_norm.weight")),
        queries(file.read(layer + "self_attn.q_proj.weight").shape[0] / q_norm.view.shape[0]),
        keys(file.read(layer + "self_attn.k_proj.weight").shape[0] / q_norm.view.shape[0]),
        inner(file.read(layer + "mlp.gate_proj.weight").shape[0]) {}
  Placed table, before, between, q_norm, k_norm;
  std::int64_t queries, keys, inner;  // heads, and the width of the activation
};

bool is_right(const tw::Device& device, const Layer& layer) {
  const tw::Stream stream(device);
  const tw::Type type = layer.table.view.type;
  const std::int64_t h = layer.table.view.shape[1], d = layer.q_norm.view.shape[0];
  std::vector<std::int32_t> tokens(kTokens);
  std::iota(tokens.begin(), tokens.end(), 3);  // also the positions, and the slots in the cache
  const Placed ids(device, tw::s32, {kTokens});
  ids.memory.upload(std::as_bytes(std::span(tokens)));
  const Placed x(device, type, {kTokens, h}), norm(device, type, {kTokens, h});
  tw::embedding(stream, {ids.view, layer.table.view, {}, x.view});
  tw::rms_norm(stream, {.x = x.view, .w = layer.before.view, .y = norm.view});
  stream.synchronize();
  bool right = lesson::is_norm_right(x, layer.before, norm);

  auto heads = [&](std::int64_t count) {
    Placed rows = lesson::repeated(device, norm, count * d);
    rows.view = tw::make_view(rows.memory.address(), type, std::array{kTokens, count, d});
    return rows;
  };
  const Placed q = heads(layer.queries), k = heads(layer.keys), v = heads(layer.keys);
  const Placed angles(device, tw::f32, {32, d});
  const Placed key_cache(device, type, {1, 32, layer.keys, d}),
      value_cache(device, type, {1, 32, layer.keys, d});
  tw::rope_table(stream, angles.view, {.theta = 1e6});
  const tw::QkTensors in_place{.q = q.view,
                               .k = k.view,
                               .q_weight = layer.q_norm.view,
                               .k_weight = layer.k_norm.view,
                               .positions = ids.view,
                               .cos_sin = angles.view,
                               .q_out = q.view,
                               .k_out = k.view,
                               .v = v.view,
                               .slot_mapping = ids.view,
                               .key_cache = key_cache.view,
                               .value_cache = value_cache.view};
  tw::qk_norm_rope(stream, in_place);
  stream.synchronize();

  const Placed attended = lesson::repeated(device, q, h);
  tw::fused_add_rms_norm(stream, {.x = attended.view,
                                  .residual = x.view,
                                  .w = layer.between.view,
                                  .y = norm.view,
                                  .residual_out = x.view});
  stream.synchronize();
  const Placed gate_up = lesson::repeated(device, norm, 2 * layer.inner),
               z(device, type, {kTokens, layer.inner});
  tw::gated_activation(stream, {.x = gate_up.view, .y = z.view});
  stream.synchronize();
  right &= lesson::is_norm_right(x, layer.between, norm);
  return right && lesson::is_end_right(gate_up, z, v, value_cache, tokens.front());
}

int run(const char* device_name, const std::string& path, const std::string& number) {
  const tw::Device device = tw::Device::open(device_name);
  const Layer layer(device, tw::SafetensorsFile(path), "model.layers." + number + ".");
  const bool right = is_right(device, layer) && device.findings().empty();
  for (const auto& finding : device.findings())
    std::printf("%s\n", to_string(finding).c_str());
  std::printf("layer %s of %s is %s on %s\n", number.c_str(), path.c_str(),
              right ? "right" : "WRONG", device.id().c_str());
  return right ? 0 : 1;
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "emu:sm_90a", argc > 2 ? argv[2] : lesson::make_checkpoint(),
               argc > 3 ? argv[3] : "0");
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

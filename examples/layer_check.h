// SPDX-License-Identifier: Apache-2.0
// What lesson 17 needs beside its subject: tensors in place, a small checkpoint, and a check.
#pragma once

#include "tilewright/safetensors.h"
#include "tilewright/tilewright.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lesson {

/// A tensor on the device.
struct Placed {
  Placed(const tilewright::Device& device, tilewright::Type type, std::vector<std::int64_t> shape)
      : memory(device, tilewright::storage_bytes(type, shape)),
        view(tilewright::make_view(memory.address(), type, shape)) {}
  Placed(const tilewright::Device& device, const tilewright::Array& array)
      : Placed(device, array.type, array.shape) {
    memory.upload(array.bytes);
  }
  /// As a matrix on the host.
  tilewright::Array array() const {
    tilewright::Array host = tilewright::make_array(
        "", view.type, {view.shape[0], tilewright::size(view) / view.shape[0]});
    memory.download(host.bytes);
    return host;
  }
  tilewright::Buffer memory;
  tilewright::View view;
};

/// Writes a layer with Qwen3's names: 2 heads of queries, 1 of keys and values.
inline std::string make_checkpoint() {
  std::vector<tilewright::Array> tensors;
  auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    std::vector<double> values(static_cast<std::size_t>(tilewright::element_count(shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>((i * 37 + tensors.size()) % 113) / 64 - 0.875;
    tensors.push_back(tilewright::make_array(name + ".weight", tilewright::bf16, shape, values));
  };
  const std::string layer = "model.layers.0.";
  add("model.embed_tokens", {97, 128});
  add(layer + "input_layernorm", {128});
  add(layer + "post_attention_layernorm", {128});
  add(layer + "self_attn.q_norm", {64});
  add(layer + "self_attn.k_norm", {64});
  add(layer + "self_attn.q_proj", {128, 128});
  add(layer + "self_attn.k_proj", {64, 128});
  add(layer + "mlp.gate_proj", {192, 128});
  const auto path = std::filesystem::temp_directory_path() / "tilewright_lesson_17.safetensors";
  tilewright::write_safetensors(path.string(), tensors);
  return path.string();
}

/// The rows of `input`, repeated to a width.
inline Placed repeated(const tilewright::Device& device, const Placed& input, std::int64_t width) {
  const std::vector<double> rows = tilewright::to_doubles(input.array());
  const auto count = static_cast<std::size_t>(input.view.shape[0]);
  const std::size_t from = rows.size() / count, to = static_cast<std::size_t>(width);
  std::vector<double> wide;
  for (std::size_t i = 0; i < count * to; ++i)
    wide.push_back(rows[i / to * from + i % to % from]);
  return {device, tilewright::make_array("", input.view.type, {input.view.shape[0], width}, wide)};
}

/// Within two units of bf16's last place, or of f16's least number.
inline bool is_near(double out, double want) {
  return std::abs(out - want) <= std::abs(want) / 64 + 0x1p-24;
}

/// Whether rows of y are those of x over their root mean square, times w.
inline bool is_norm_right(const Placed& x, const Placed& w, const Placed& y) {
  const std::vector<double> in = tilewright::to_doubles(x.array());
  const std::vector<double> weights = tilewright::to_doubles(w.array());
  const std::vector<double> out = tilewright::to_doubles(y.array());
  const std::size_t h = weights.size();
  bool right = true;
  for (std::size_t row = 0; row < in.size(); row += h) {
    double squares = 0;
    for (std::size_t j = 0; j < h; ++j)
      squares += in[row + j] * in[row + j];
    const double factor = 1 / std::sqrt(squares / static_cast<double>(h) + 1e-6);
    for (std::size_t j = 0; j < h; ++j)
      right &= is_near(out[row + j], in[row + j] * factor * weights[j]);
  }
  return right;
}

/// Whether z is gate / (1 + e^-gate) up, and the slots of the cache from `first` on are the rows of
/// v.
inline bool is_end_right(const Placed& gate_up, const Placed& z, const Placed& v,
                         const Placed& cached, std::int64_t first) {
  const std::vector<double> in = tilewright::to_doubles(gate_up.array());
  const std::vector<double> out = tilewright::to_doubles(z.array());
  const std::size_t width = out.size() / static_cast<std::size_t>(z.view.shape[0]);
  bool right = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t gate = i / width * 2 * width + i % width;
    const double want = in[gate] / (1 + std::exp(-in[gate])) * in[gate + width];
    right &= is_near(out[i], want);
  }
  const std::vector<std::byte> rows = v.array().bytes, slots = cached.array().bytes;
  const auto row = static_cast<std::ptrdiff_t>(rows.size()) / v.view.shape[0];
  return right && std::equal(rows.begin(), rows.end(), slots.begin() + first * row);
}

}  // namespace lesson

// SPDX-License-Identifier: Apache-2.0
// What the plans of the gated activations may choose.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/rows/row_tile_space.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;

using Names = std::array<std::string_view, kActivations>;
using Spaces = std::array<tune::Space, kActivations>;
constexpr Names kCodeNames{"silu_and_mul.codes", "gelu_and_mul.codes", "gelu_tanh_and_mul.codes",
                           "swigluoai_and_mul.codes", "relu2.codes"};
constexpr Names kRowNames{"silu_and_mul.rows", "gelu_and_mul.rows", "gelu_tanh_and_mul.rows",
                          "swigluoai_and_mul.rows", "relu2.rows"};

/// One access a thread where it has 16 bytes: the arithmetic between load and store leaves no
/// registers for more. Codes need accesses of whole groups.
const tune::Space& tile_space(Activation activation, AccessWidth width) {
  static const auto make = [](AccessWidth which) {
    Spaces made;
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] = which == AccessWidth::exactly
                    ? rows::row_tile_space(kCodeNames[i], rows::TileAccesses::one)
                    : rows::row_tile_space(operator_name(static_cast<Activation>(i)),
                                           rows::TileAccesses::narrowed);
    }
    return made;
  };
  static const Spaces numbers = make(AccessWidth::at_most), codes = make(AccessWidth::exactly);
  const Spaces& spaces = width == AccessWidth::exactly ? codes : numbers;
  return spaces[static_cast<std::size_t>(activation)];
}

constexpr std::array<tune::KeySpec, 4> kRowKeys{
    {{"bits"}, {"access"}, {"columns"}, {"rows", tune::Match::nearest}}};
constexpr std::array kRowThreads{4,   8,   16,  32,  64,  96,  128, 192, 256,
                                 320, 384, 448, 512, 640, 768, 896, 1024};
constexpr std::array kRowsOfBlock{1, 2, 4, 8, 16, 32};
constexpr std::array<tune::Knob, 2> kRowKnobs{{{"threads", kRowThreads}, {"rows", kRowsOfBlock}}};
constexpr std::array<tune::Reducible, 1> kRowReducible{{{"T", 67}}};

/// Two accesses a thread, in blocks of 128 threads where a row takes a warp or less.
tune::Config standard_row(const DeviceProperties&, const tune::Key& key) {
  const std::int64_t half = rows::ceil_div(rows::ceil_div(key[2], key[1]), 2);
  const std::int64_t threads =
      half <= kWarp ? rows::power_of_two_from(half) : rows::ceil_div(half, kWarp) * kWarp;
  const auto all = static_cast<int>(std::min<std::int64_t>(threads, kMaxThreads));
  return {all, all <= kWarp ? 128 / all : 1};
}

/// A warp's part of a row takes a power of two of its lanes; blocks are whole warps.
bool valid_row(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [threads, together, c, d, e, f, g, h] = config;
  if (threads < 1 || threads > kMaxThreads || together < 1 || together > kMaxThreads) return false;
  if (threads < kWarp ? (threads & (threads - 1)) != 0 : threads % kWarp != 0) return false;
  if (together > 1 && threads > kWarp) return false;
  const int all = threads * together;
  const std::int64_t each = rows::ceil_div(rows::ceil_div(key[2], key[1]), threads);
  const bool held = each <= kMaxGatedAccesses;
  return all % kWarp == 0 && all <= kMaxThreads && (held || threads == kMaxThreads);
}

const tune::Space& row_space(Activation activation) {
  static const Spaces spaces = [] {
    Spaces made;
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = {kRowNames[i], kRowKeys, kRowKnobs, standard_row, valid_row, kRowReducible};
    return made;
  }();
  return spaces[static_cast<std::size_t>(activation)];
}

}  // namespace

rows::RowTile choose_tile(Activation activation, const DeviceProperties& device, const View& rows,
                          int vector_elems, AccessWidth width) {
  return rows::choose_row_tile(tile_space(activation, width), device, rows, vector_elems);
}

rows::RowShape choose_row(Activation activation, const DeviceProperties& device, const View& rows,
                          int vector_elems) {
  const tune::Config chosen = tune::choose(
      row_space(activation), device, {bits(rows.type), vector_elems, rows.shape[1], rows.shape[0]});
  rows::RowShape row =
      rows::make_row_shape(rows.shape[1], vector_elems, chosen[0], kMaxGatedAccesses);
  row.rows_per_block = chosen[1];
  return row;
}

}  // namespace tilewright

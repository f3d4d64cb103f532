// SPDX-License-Identifier: Apache-2.0
// The space of row tiles, and its rule without a record.
#include "kernels/rows/row_tile_space.h"

#include <array>

namespace tilewright::rows {
namespace {

constexpr std::array<tune::KeySpec, 4> kKeys{
    {{"bits"}, {"access"}, {"columns", tune::Match::nearest}, {"rows", tune::Match::nearest}}};
constexpr std::array kThreads{32, 64, 128, 256, 512};
constexpr std::array kOne{1};
constexpr std::array kAccesses{1, 2, 4, 8};
constexpr std::array<tune::Knob, 2> kSingle{{{"threads", kThreads}, {"accesses", kOne}}};
constexpr std::array<tune::Knob, 2> kSeveral{{{"threads", kThreads}, {"accesses", kAccesses}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"T", 67}, {"V", 1000}}};

/// One access a thread in blocks of 128 threads reached the bandwidth of a copy on an H200.
tune::Config standard(const DeviceProperties&, const tune::Key&) { return {128, 1}; }

template <int kMost>
bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [threads, accesses, c, d, e, f, g, h] = config;
  const bool whole = threads >= 32 && threads <= 1024 && threads % 32 == 0;
  const bool useful = accesses == 1 || (accesses - 1) * key[1] < key[2];
  return whole && (threads & (threads - 1)) == 0 && accesses >= 1 && accesses <= kMost && useful;
}

}  // namespace

tune::Space row_tile_space(std::string_view name, TileAccesses accesses) {
  if (accesses == TileAccesses::one) return {name, kKeys, kSingle, standard, valid<1>, kReducible};
  return {name, kKeys, kSeveral, standard, valid<8>, kReducible};
}

RowTile choose_row_tile(const tune::Space& space, const DeviceProperties& device,
                        const View& matrix, int vector_elems) {
  const tune::Config config = tune::choose(
      space, device, {bits(matrix.type), vector_elems, matrix.shape[1], matrix.shape[0]});
  return make_row_tile(matrix, vector_elems, config[0], config[1]);
}

}  // namespace tilewright::rows

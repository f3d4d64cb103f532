// SPDX-License-Identifier: Apache-2.0
// The space of row tiles, and its rule without a record.
#include "kernels/rows/row_tile_space.h"

#include <algorithm>
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
constexpr std::array kElems{1, 2, 4, 8, 16, 32};
constexpr std::array<tune::Knob, 2> kNarrowed{{{"threads", kThreads}, {"elems", kElems}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"T", 67}, {"V", 1000}}};

/// One access a thread in blocks of 128 threads reached the bandwidth of a copy on an H200.
tune::Config standard(const DeviceProperties&, const tune::Key&) { return {128, 1}; }

/// Of a thread, where the alignment leaves narrow ones: up to 16 bytes and 8 accesses, if there are
/// many elements; 1 where an access has 16 bytes. One element a thread took silu_and_mul of 16384
/// rows of 2 x 4097 bf16 three times as long as a copy on an H200 (peers_before.json).
int narrow_accesses(const DeviceProperties& device, const tune::Key& key) {
  constexpr std::int64_t kMost = 8;
  constexpr std::int64_t kWideBits = 128, kManyThreads = 512;  // of a multiprocessor
  const auto [bits, access, columns, rows, e, f, g, h] = key;
  const std::int64_t along = ceil_div(columns, access);
  std::int64_t accesses = std::max<std::int64_t>(kWideBits / (access * bits), 1);
  while (accesses > 1 &&
         (accesses > along || along * rows / accesses < kManyThreads * device.sm_count))
    accesses /= 2;
  return static_cast<int>(std::min<std::int64_t>(accesses, kMost));
}

/// Rows that an index names come faster two accesses at a time, once every multiprocessor has many
/// blocks (gather_accesses.json).
tune::Config standard_several(const DeviceProperties& device, const tune::Key& key) {
  constexpr int kBlock = 128;
  constexpr std::int64_t kManyBlocks = 16;  // of a multiprocessor
  const auto [bits, access, columns, rows, e, f, g, h] = key;
  const int narrow = narrow_accesses(device, key);
  if (narrow > 1) return {kBlock, narrow};
  const std::int64_t blocks = ceil_div(columns, access * kBlock) * rows;
  const bool whole = columns > access * kBlock;
  return {kBlock, whole && blocks > kManyBlocks * device.sm_count ? 2 : 1};
}

/// Elements of a thread. Where there are few its instructions are what takes long, one after the
/// other: more threads have fewer each, up to 4 blocks for every multiprocessor (measured on an
/// H200). Where the alignment leaves narrow accesses it has several.
tune::Config standard_narrowed(const DeviceProperties& device, const tune::Key& key) {
  constexpr int kLeastAccessBits = 32, kBlock = 128, kBlocks = 4;
  const auto [bits, access, columns, rows, e, f, g, h] = key;
  const std::int64_t threads = std::int64_t{device.sm_count} * kBlocks * kBlock;
  std::int64_t elems = access;
  while (elems * bits > kLeastAccessBits && ceil_div(columns, elems / 2) * rows <= threads)
    elems /= 2;
  if (elems == access) elems *= narrow_accesses(device, key);
  return {kBlock, static_cast<int>(elems)};
}

bool valid_threads(int threads) {
  return threads >= 32 && threads <= 1024 && threads % 32 == 0 && (threads & (threads - 1)) == 0;
}

template <int kMost>
bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [threads, accesses, c, d, e, f, g, h] = config;
  const bool useful = accesses == 1 || (accesses - 1) * key[1] < key[2];
  return valid_threads(threads) && accesses >= 1 && accesses <= kMost && useful;
}

bool valid_narrowed(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  constexpr std::int64_t kMostBits = 512;  // of a thread that has several accesses
  const auto [threads, elems, c, d, e, f, g, h] = config;
  if (!valid_threads(threads) || elems < 1) return false;
  if (elems <= key[1]) return key[1] % elems == 0;
  const std::int64_t accesses = elems / key[1];
  return elems % key[1] == 0 && elems * key[0] <= kMostBits && (accesses - 1) * key[1] < key[2];
}

}  // namespace

tune::Space row_tile_space(std::string_view name, TileAccesses accesses) {
  switch (accesses) {
    case TileAccesses::one:
      return {name, kKeys, kSingle, standard, valid<1>, kReducible};
    case TileAccesses::several:
      return {name, kKeys, kSeveral, standard_several, valid<8>, kReducible};
    case TileAccesses::narrowed:
      break;
  }
  return {name, kKeys, kNarrowed, standard_narrowed, valid_narrowed, kReducible};
}

RowTile choose_row_tile(const tune::Space& space, const DeviceProperties& device,
                        const View& matrix, int vector_elems) {
  const tune::Key key{bits(matrix.type), vector_elems, matrix.shape[1], matrix.shape[0]};
  const tune::Config config = tune::choose(space, device, key);
  if (space.knobs.data() == kNarrowed.data()) {
    const int of_access = std::min(config[1], vector_elems);
    return make_row_tile(matrix, of_access, config[0], config[1] / of_access);
  }
  return make_row_tile(matrix, vector_elems, config[0], config[1]);
}

}  // namespace tilewright::rows

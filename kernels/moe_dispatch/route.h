// SPDX-License-Identifier: Apache-2.0
// Traced: gives every choice of every token its row among the rows of its expert.
#pragma once

#include "tilewright/grid_barrier.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"

#include <optional>
#include <string>

namespace tilewright {

/// Order of the rows of one expert.
enum class DispatchOrder : std::uint8_t {
  stable,    ///< ascending tokens
  unordered  ///< as atomic operations come
};

/// How a block routes. A choice is one of the T K elements of ids, in row-major order.
struct RouteConfig {
  int experts = 0;       ///< of this rank
  int first_expert = 0;  ///< of all
  int k = 0;             ///< choices of a token
  int block = 1;         ///< an expert's rows are padded to a multiple of it
  DispatchOrder order = DispatchOrder::stable;
  int threads = 256;
  friend bool operator==(const RouteConfig&, const RouteConfig&) = default;
  int warps() const { return threads / 32; }
  /// Counters of an expert: stable rows need one for each warp.
  int counters() const { return order == DispatchOrder::stable ? warps() : 1; }
};
std::string to_string(const RouteConfig& config);
/// Dynamic shared memory that route_tokens() uses, from offset 0 on.
std::int64_t route_smem_bytes(const RouteConfig& config);

/// The blocks that share the choices.
struct RouteTeam {
  Value block, blocks;     ///< this one of so many
  Value choices_per_warp;  ///< a multiple of 32; all warps of all blocks cover the choices
  Value writes;            ///< predicate: whether the block writes to global memory
};

/// What blocks of a team tell each other: the counts of each.
struct RouteExchange {
  GridBarrier& barrier;
  Tensor table;  ///< s32, blocks times experts
};

struct RouteTensors {
  Tensor ids;                              ///< (T, K)
  Tensor counts, offsets;                  ///< (E), (E + 1)
  Tensor slot;                             ///< (T K)
  std::optional<Tensor> sorted_token_ids;  ///< (M): the choice of each row, T K for padding
  std::optional<Tensor> block_expert;      ///< (M / block): the expert of each block of rows, or -1
  Tensor total_rows;                       ///< (1)
};

/// An expert's rows begin at offsets(e), those of its tokens first, counts(e) in number.
struct ExpertRows {
  Tensor counts, offsets;
};

/// Routes the team's choices; all threads of its blocks take part. `exchange` is for teams of
/// several blocks. `slots`: shared memory that gets the slots too. Returns the experts' rows in
/// shared memory, for which a barrier() is yet to come, as for `slots`.
ExpertRows route_tokens(const RouteConfig& config, const RouteTensors& tensors,
                        const RouteTeam& team, const std::optional<RouteExchange>& exchange,
                        const std::optional<Tensor>& slots);

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// What bounds a dispatch: sizes that fit its counters, its workspace and its index type.
#pragma once

#include <cstdint>

namespace tilewright {

/// Of all ranks: the first one's counter is a literal behind every expert's address, in 32 bits.
inline constexpr std::int64_t kMaxDispatchExpertsOfAll = 1 << 20;
inline constexpr std::int64_t kMaxDispatchExperts = 4096;  ///< of a rank: counters in shared memory
inline constexpr std::int64_t kMaxDispatchChoices = std::int64_t{1} << 30;             ///< T K
inline constexpr std::int64_t kMaxDispatchRows = (std::int64_t{1} << 31) - (1 << 20);  ///< M
inline constexpr std::int64_t kMaxReplicatedChoices = 4096;  ///< slots in shared memory
inline constexpr std::int64_t kMaxRouteBlocks = 64;          ///< counts of each in the workspace
inline constexpr std::int64_t kBarrierBytes = 128;           ///< a cache line of its own
inline constexpr std::int64_t kBulkGrain = 16;               ///< bytes that bulk copies move
inline constexpr std::int64_t kMaxStageBytes = 196'608;      ///< of a multiprocessor, for rows

}  // namespace tilewright

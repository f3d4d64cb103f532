// SPDX-License-Identifier: Apache-2.0
// How long an operator takes on a GPU, against the ceiling of a copy of as many bytes.
#pragma once

#include "cli/json.h"
#include "tilewright/device.h"
#include "tilewright/stream.h"
#include "tune/timing.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright::cli {

struct Measurement {
  tune::Timing time;
  int launches = 0;  ///< in a graph
  int replays = 0;
  int copies = 0;          ///< of the tensors, used in turn
  std::int64_t bytes = 0;  ///< of the contract: each input read once, each output written once
  tune::Timing ceiling;    ///< the fastest way found to copy as many bytes; all zero without bytes
  std::string ceiling_by;  ///< "memcpy", "memcpy in a graph", "tile_copy"

  double bytes_per_second() const;
  double of_ceiling() const;  ///< 0 without a ceiling
};

/// Graph replay on cold tensors: launches rotate over copies of all tensors, more than four times
/// the L2 cache in all where memory allows, and the cache is flushed before each replay. The
/// operator and the copies take turns. Many measurements share a stream, as launches on later ones
/// of a process took 0.35 us longer each on an H200 (stream_order.json). Throws
/// Error(unsupported) on an emulated device.
Measurement measure(const Stream& stream, const tune::Inputs& inputs,
                    const std::vector<std::string>& wanted,
                    std::span<const Operator* const> operators);

/// What figures were measured with: "nvptxcompiler 13.0" and "CUDA 13.0".
std::string assembler_text();
std::string driver_text(const Device& device);

std::string text_of(const Measurement& measurement);
/// Fields as in docs/measuring.md.
Json json_of(const Measurement& measurement);

}  // namespace tilewright::cli

// SPDX-License-Identifier: Apache-2.0
// What a warp that carries a state hands to the warp that reads outputs from it, chunk by chunk.
#pragma once

#include "kernels/kda_prefill/chunk_record.h"
#include "tilewright/fragment.h"
#include "tilewright/mbarrier.h"

#include <cstdint>

namespace tilewright {

/// Two buffers for each pair of warps, of operands of mma() as lanes hold them: the state at
/// a chunk's start, then what the chunk's tokens add; and the scale of both.
class Handover {
 public:
  /// In shared memory from `offset_bytes` on; before a barrier of the whole block.
  Handover(const ChunkShape& shape, int pairs, std::int64_t offset_bytes);
  static std::int64_t bytes(const ChunkShape& shape, int pairs);

  /// One chunk's buffer of one pair.
  class Buffer {
   public:
    // By the carrying warp.
    void wait_empty() const;
    void put_state(const ChunkRecord& record, int step, const Fragment& a) const;
    /// And hands over.
    void put_added(const ChunkRecord& record, const Fragment& added, const Value& scale) const;
    // By the reading warp.
    void wait_full() const;
    Fragment state(int step) const;
    Fragment added() const;
    Value scale() const;
    /// Behind a barrier of the warp that follows its last reads.
    void release() const;

   private:
    friend class Handover;
    Buffer(const ChunkShape& shape, const Tensor& operands, const Element& scale,
           const Mbarrier& full, const Mbarrier& empty, const Value& parity)
        : s_(shape),
          operands_(operands),
          scale_(scale),
          full_(full),
          empty_(empty),
          parity_(parity) {}
    Element place(int step) const;
    ChunkShape s_;
    Tensor operands_;
    Element scale_;
    Mbarrier full_, empty_;
    Value parity_;
  };
  Buffer buffer(const Value& pair, const Value& chunk) const;

 private:
  ChunkShape s_;
  int pairs_;
  std::int64_t offset_bytes_;
  Mbarriers full_, empty_;
};

}  // namespace tilewright

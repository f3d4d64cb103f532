// SPDX-License-Identifier: Apache-2.0
// Tensors of a session in memory of their own, or in pieces of few allocations.
#include "tune/session.h"

#include <gtest/gtest.h>

namespace {

namespace tw = tilewright;
using tw::tune::Slab;

TEST(Slab, PiecesShareAnAllocationAndDoNotOverlap) {
  Slab slab(tw::Device::open("emu:sm_90a"));
  const Slab::Piece first = slab.take(1000), none = slab.take(0), second = slab.take(1 << 20);
  EXPECT_EQ(first.buffer, second.buffer);
  EXPECT_EQ(second.address() - first.address(), 1024U);
  EXPECT_EQ(first.address() % 256, 0U);
  EXPECT_EQ(none.address(), 0U);
  EXPECT_EQ(second.size_bytes, 1 << 20);
}

TEST(Slab, WhatDoesNotFitBeginsAnother) {
  Slab slab(tw::Device::open("emu:sm_90a"));
  const Slab::Piece first = slab.take(20 << 20), second = slab.take(20 << 20),
                    third = slab.take(64);
  EXPECT_NE(first.buffer, second.buffer);
  EXPECT_EQ(second.buffer, third.buffer);
  const Slab::Piece large = slab.take(40 << 20), fourth = slab.take(64);
  EXPECT_EQ(large.buffer->size_bytes(), 40 << 20);
  EXPECT_EQ(large.offset_bytes, 0);
  EXPECT_EQ(fourth.buffer, third.buffer);
}

}  // namespace

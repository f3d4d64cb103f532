// SPDX-License-Identifier: Apache-2.0
// Tensors of a session in memory of their own, or in pieces of few allocations.
#include "tune/session.h"

#include <algorithm>
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

TEST(Slab, CopiesOfALargeTableAreARowApart) {
  Slab slab(tw::Device::open("emu:sm_90a"), 1 << 20);
  const std::vector<std::int64_t> shape{2048, 512};  // rows of 1024 bytes, 2 MiB in all
  const Slab::Piece first = slab.take("table", tw::bf16, shape),
                    second = slab.take("table", tw::bf16, shape);
  EXPECT_EQ(first.buffer, second.buffer);
  EXPECT_EQ(second.address() - first.address(), 1024U);
  EXPECT_EQ(first.buffer->size_bytes(), (2 << 20) + (512 << 10));
  for (int i = 2; i <= 512; ++i)
    EXPECT_EQ(slab.take("table", tw::bf16, shape).offset_bytes, i * 1024);
  EXPECT_EQ(slab.take("table", tw::bf16, shape).address(),
            first.address());  // from the first again
  EXPECT_NE(slab.take("other", tw::bf16, shape).buffer, first.buffer);
}

TEST(Slab, AWindowIsUploadedOnceAndSoIsWhatLiesBehind) {
  Slab slab(tw::Device::open("emu:sm_90a"), 1 << 20);
  const std::vector<std::int64_t> shape{2048, 512};
  const Slab::Piece first = slab.take("table", tw::bf16, shape),
                    second = slab.take("table", tw::bf16, shape);
  std::vector<std::byte> bytes(2 << 20);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i / 1024 % 251);
  first.upload(bytes);
  second.upload(std::vector<std::byte>(bytes.size()));  // no effect
  std::vector<std::byte> all(static_cast<std::size_t>(first.buffer->size_bytes()));
  first.buffer->download(all, 0);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), all.begin()));
  EXPECT_TRUE(std::equal(all.begin() + (2 << 20), all.end(), bytes.begin()));
}

TEST(Slab, IndicesAndShortTensorsAreNoTables) {
  Slab slab(tw::Device::open("emu:sm_90a"), 1 << 20);
  EXPECT_EQ(slab.take("slots", tw::s64, {1 << 18}).kind, Slab::Piece::Kind::own);
  EXPECT_EQ(slab.take("experts", tw::bf16, {8, 512, 512}).kind, Slab::Piece::Kind::own);
  EXPECT_EQ(slab.take("small", tw::bf16, {2048, 256}).kind, Slab::Piece::Kind::own);
  EXPECT_EQ(slab.take("table", tw::bf16, {2048, 512}).kind, Slab::Piece::Kind::window);
}

}  // namespace

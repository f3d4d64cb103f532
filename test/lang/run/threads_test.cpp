// SPDX-License-Identifier: Apache-2.0
// Control flow and threads that work together: loops of every shape, Vars, shuffles, barriers.
#include "reference.h"
#include "run_fixture.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/sync.h"

namespace tilewright::test {
namespace {

class Threads : public RunTest {
 protected:
  /// out(t) = body(t) for the threads of one block.
  template <class Body>
  std::vector<std::int64_t> each(int threads, const Body& body) {
    Data out(s64, {threads});
    run(
        {.threads = threads},
        [&](const Tensor& destination) { destination(thread_idx().x) = body().to(s64); }, out);
    std::vector<std::int64_t> results;
    for (std::uint64_t bits : out.bits)
      results.push_back(static_cast<std::int64_t>(bits));
    return results;
  }
};

struct Loop {
  const char* name;
  int begin, end, step;
};

TEST_F(Threads, CountLoopsOfEveryShape) {
  const Loop loops[] = {{"empty", 5, 5, 1},        {"backwards", 5, -5, 1},
                        {"once", 0, 1, 1},         {"negative begin", -7, 3, 1},
                        {"ragged step", 0, 10, 3}, {"step beyond the end", 2, 4, 100}};
  for (const Loop& loop : loops) {
    for (Type type : {s32, s64}) {
      std::int64_t expected = 0;
      for (int i = loop.begin; i < loop.end; i += loop.step)
        expected += i * 10 + 1;
      auto constants = each(32, [&] {
        Var sum(type, 0);
        for_(constant(type, loop.begin), loop.end, loop.step,
             [&](const Value& i) { sum += i * 10 + 1; });
        return Value(sum);
      });
      EXPECT_EQ(constants[3], expected) << loop.name;
      auto values = each(32, [&] {
        Value zero = (thread_idx().x / 32).to(type) * Value(thread_idx().x).to(type);
        Var sum(type, 0);
        TW_FOR(i, zero + loop.begin, zero + loop.end, zero + loop.step) { sum += i * 10 + 1; }
        return Value(sum);
      });
      EXPECT_EQ(values[3], expected) << loop.name;
    }
  }
}

TEST_F(Threads, CountUnsignedBeyondTheSignedRange) {
  auto got = each(1, [] {
    Var rounds(s32, 0);
    for_(constant(u32, 0xfffffff0u), 0xfffffffbu, 4, [&](const Value&) { rounds += 1; });
    return Value(rounds);
  });
  EXPECT_EQ(got[0], 3);
}

TEST_F(Threads, ReadABoundOnceBeforeTheLoop) {
  auto got = each(1, [] {
    Var end(s32, 3);
    Var rounds(s32, 0);
    for_(0, end, 1, [&](const Value&) {
      end = 100;
      rounds += 1;
    });
    return Value(rounds);
  });
  EXPECT_EQ(got[0], 3);
}

TEST_F(Threads, KeepSnapshotsWhenVarsChange) {
  auto got = each(1, [] {
    Var a(s32, 1);
    Var b(s32, 2);
    Value old = a;
    a = b;  // a swap by way of a snapshot
    b = old;
    Var& same = a;
    a = same;
    a += a;
    Value sum = a * 100 + b;
    a = sum;
    b = a;  // two Vars, one number
    a = a + 1;
    return a * 10000 + b;
  });
  EXPECT_EQ(got[0], 402 * 10000 + 401);
}

TEST_F(Threads, DoNotShareARegisterThatAVarTookOver) {
  auto got = each(1, [] {
    Value t = thread_idx().y + lane_idx() + 3;
    auto twice = [&] {
      Value made = t * t;
      Value again = t * t;  // the same register
      Var keep(again);
      keep += 1;
      return made;
    };
    Var v(twice());
    Value product = t * t;  // may be the same register still
    v = 5;
    return product * 10 + v;
  });
  EXPECT_EQ(got[0], 95);
}

TEST_F(Threads, LeaveLoopsOneByOne) {
  auto got = each(64, [] {
    Value t = thread_idx().x;
    Var sum(s32, 0);
    for_(10, [&](const Value& i) {
      if_(i == t % 7, [] { break_(); });
      for_(5, [&](const Value& j) {
        if_(j % 2 == 1, [] { continue_(); });
        if_(j > t % 5, [] { break_(); });
        sum += 1;
      });
      sum += 100;
    });
    return Value(sum);
  });
  for (int t = 0; t < 64; ++t) {
    std::int64_t expected = 0;
    for (int i = 0; i < 10 && i != t % 7; ++i) {
      for (int j = 0; j < 5; ++j) {
        if (j % 2 == 1) continue;
        if (j > t % 5) break;
        ++expected;
      }
      expected += 100;
    }
    EXPECT_EQ(got[static_cast<std::size_t>(t)], expected) << "thread " << t;
  }
}

TEST_F(Threads, TakeTheSideOfAConstantWhenTraced) {
  auto got = each(1, [] {
    Var v(s32, 0);
    if_(true, [&] { v += 1; }).else_([&] { v += 10; });
    if_(false, [&] { v += 100; }).else_([&] { v += 1000; });
    if_(Value(thread_idx().x) < 5000, [&] { v += 10000; });  // by its bounds
    TW_IF(false) { v = -1; }
    TW_ELSE {
      TW_IF(true) { v += 100000; }
    }
    return Value(v);
  });
  EXPECT_EQ(got[0], 111001);
}

TEST_F(Threads, ReturnFromWithin) {
  Data out(s32, {32});
  run(
      {},
      [](const Tensor& destination) {
        Value t = thread_idx().x;
        destination(t) = 1;
        while_([&] { return t >= 8; },
               [&] {
                 destination(t) = 2;
                 return_();
               });
        destination(t) = 3;
      },
      out);
  for (std::size_t t = 0; t < 32; ++t)
    EXPECT_EQ(out.bits[t], t < 8 ? 3u : 2u);
}

TEST_F(Threads, ShuffleEveryWidthAndType) {
  for (Type type : {s16, f16, s32, f32, u64, f64}) {
    for (int width : {2, 4, 8, 16, 32}) {
      for (int n : {0, 1, 3, 5}) {
        Data out(type, {4, 32});
        run(
            {},
            [&](const Tensor& destination) {
              Value lane = lane_idx();
              Value own = lane.to(type);
              destination(0, lane) = shuffle_xor(own, n % width, width);
              destination(1, lane) = shuffle_down(own, n, width);
              destination(2, lane) = shuffle_up(own, n, width);
              destination(3, lane) = shuffle(own, (lane + n) % 32, width);
            },
            out);
        for (int lane = 0; lane < 32; ++lane) {
          int first = lane / width * width;
          int in_segment = lane - first;
          auto stays = [&](int other) { return other < 0 || other >= width; };
          int down = in_segment + n;
          int up = in_segment - n;
          // Beyond the segment one's own value comes back.
          const int expected[] = {lane ^ (n % width), stays(down) ? lane : first + down,
                                  stays(up) ? lane : first + up, first + (lane + n) % 32 % width};
          for (std::size_t row = 0; row < 4; ++row) {
            std::uint64_t raw = out.bits[row * 32 + static_cast<std::size_t>(lane)];
            EXPECT_EQ(convert(s64, type, raw), static_cast<std::uint64_t>(expected[row]))
                << name(type) << ", width " << width << ", by " << n << ", lane " << lane
                << ", kind " << row;
          }
        }
      }
    }
  }
}

TEST_F(Threads, ReduceAndVoteOverAWarp) {
  auto add = [](const Value& a, const Value& b) { return a + b; };
  auto sums = each(64, [&] {
    Value t = thread_idx().x;
    return warp_reduce(t, add) * 1000 + warp_reduce(t, add, 4);
  });
  EXPECT_EQ(sums[5], (31 * 32 / 2) * 1000 + (4 + 5 + 6 + 7));
  EXPECT_EQ(sums[40], (63 * 64 / 2 - 31 * 32 / 2) * 1000 + (40 + 41 + 42 + 43));
  auto votes = each(64, [&] {
    Value t = thread_idx().x;
    Value any = vote_any(t == 40).to(s32);
    Value all = vote_all(t < 40).to(s32);
    return any * 10 + all + ballot(t % 32 == 3).to(s32) * 100;
  });
  EXPECT_EQ(votes[0], 801);
  EXPECT_EQ(votes[63], 810);
}

TEST_F(Threads, PassItemsFromProducersToConsumers) {
  constexpr int kRounds = 6;
  Data in(s32, {kRounds, 32});
  for (std::size_t i = 0; i < in.bits.size(); ++i)
    in.bits[i] = i * i;
  Data out(s32, {kRounds, 32});
  auto body = [&](const Tensor& source, const Tensor& destination) {
    Tensor slot = shared(s32, make_row_major(Shape{2, 32}));
    Group full[] = {named_barrier(64), named_barrier(64)};
    Group empty[] = {named_barrier(64), named_barrier(64)};
    Value lane = lane_idx();
    if_(warp_idx() == 0, [&] {
      for (int round = 0; round < kRounds; ++round) {
        int stage = round % 2;
        if (round >= 2) barrier(empty[stage]);
        slot(stage, lane) = source(round, lane).load();
        barrier_arrive(full[stage]);
      }
    }).else_([&] {
      for (int round = 0; round < kRounds; ++round) {
        int stage = round % 2;
        barrier(full[stage]);
        destination(round, 31 - lane) = slot(stage, 31 - lane).load() + 1;
        if (round + 2 < kRounds) barrier_arrive(empty[stage]);
      }
    });
  };
  run({.threads = 64}, body, in, out);
  for (std::size_t i = 0; i < in.bits.size(); ++i)
    EXPECT_EQ(out.bits[i], in.bits[i] + 1);
}

TEST_F(Threads, KeepCopiesInFlight) {
  constexpr int kTiles = 9;
  constexpr int kStages = 3;
  Data in(f32, {kTiles, 128});
  for (std::size_t i = 0; i < in.bits.size(); ++i)
    in.bits[i] = i * 3;
  Data out(f32, {kTiles, 128});
  auto body = [&](const Tensor& source, const Tensor& destination) {
    Tensor slots = dynamic_shared(f32, make_row_major(Shape{kStages, 128}));
    Value first = thread_idx().x * 4;
    auto begin = [&](int tile) {
      if (tile < kTiles) copy_async(slots(tile % kStages, first), source(tile, first), 16);
      cp_async_commit();  // also for no tile: groups count tiles
    };
    for (int tile = 0; tile < kStages - 1; ++tile)
      begin(tile);
    for (int tile = 0; tile < kTiles; ++tile) {
      cp_async_wait(kStages - 2);
      barrier();
      begin(tile + kStages - 1);
      Value mirrored = 124 - first;
      store(destination(tile, mirrored), load(slots(tile % kStages, mirrored), 4));
    }
  };
  run({.threads = 32, .dynamic_smem_bytes = kStages * 128 * 4}, body, in, out);
  EXPECT_EQ(out.bits, in.bits);
}

TEST_F(Threads, RunInlinePtxWithItsOwnRegistersAndLabels) {
  auto got = each(32, [] {
    Value t = thread_idx().x;
    auto twice = [&](const Value& x) {
      return inline_ptx(
          ".reg .pred %p; setp.lt.s32 %p, $1, 16; @%p bra small; add.s32 $0, $1, 100; bra done; "
          "small: add.s32 $0, $1, $2; done:",
          {s32}, {x, 7})[0];
    };
    return twice(t) * 1000 + twice(t + 1);
  });
  auto host = [](int x) { return x < 16 ? x + 7 : x + 100; };
  for (int t = 0; t < 32; ++t)
    EXPECT_EQ(got[static_cast<std::size_t>(t)], host(t) * 1000 + host(t + 1));
}

TEST_F(Threads, ReadTheirPlaceInBlockAndGrid) {
  Data out(s32, {2, 3, 64});
  run(
      {.threads = 64, .grid = {3, 2, 1}},
      [](const Tensor& destination) {
        Index3 b = block_idx();
        Index3 g = grid_dim();
        Value t = linear_thread_idx();
        Value place = (b.y * g.x + b.x) * block_dim().x + t;
        destination(b.y, b.x, t) = place * 100 + warp_idx() * 32 + lane_idx() - t;
      },
      out);
  for (std::size_t i = 0; i < out.bits.size(); ++i)
    EXPECT_EQ(out.bits[i], i * 100);
}

}  // namespace
}  // namespace tilewright::test

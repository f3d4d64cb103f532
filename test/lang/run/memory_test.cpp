// SPDX-License-Identifier: Apache-2.0
// Loads, stores, fragments and copies: every element size, alignment and count, on the device.
#include "reference.h"
#include "run_fixture.h"
#include "tilewright/control.h"
#include "tilewright/copy.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"

namespace tilewright::test {
namespace {

constexpr Type kSizes[] = {u8, e4m3, s16, f16, bf16, u32, f32, u64, f64};

class Memory : public RunTest {
 protected:
  /// 0x..ab pattern of the element's index in every byte, so that misplaced bytes show.
  static std::uint64_t pattern(Type type, std::size_t i) {
    return cut(type, 0x9E3779B97F4A7C15ull * (i + 1) >> 7);
  }
  static Data numbered(Type type, std::vector<std::int64_t> shape) {
    Data data(type, std::move(shape));
    for (std::size_t i = 0; i < data.bits.size(); ++i)
      data.bits[i] = pattern(type, i);
    return data;
  }
};

TEST_F(Memory, LoadsAndStoresEveryCountAtEveryOffset) {
  for (Type type : kSizes) {
    for (int offset : {0, 1, 2, 3, 4, 8}) {
      for (int count : {1, 2, 3, 4, 5, 7, 8, 16, 17}) {
        Data in = numbered(type, {64});
        Data out(type, {64});
        auto body = [&](const Tensor& source, const Tensor& destination) {
          store(destination(offset), load(source(offset), count));
        };
        run({.threads = 1}, body, in, out);
        for (int i = 0; i < 64; ++i) {
          auto k = static_cast<std::size_t>(i);
          bool copied = i >= offset && i < offset + count;
          ASSERT_EQ(out.bits[k], copied ? in.bits[k] : 0)
              << name(type) << ", " << count << " elements at " << offset << ": element " << i;
        }
      }
    }
  }
}

TEST_F(Memory, PredicatesLoadsAndStoresByThread) {
  for (Type type : kSizes) {
    for (int count : {1, 2, 3, 4, 8}) {
      Data in = numbered(type, {32, 8});
      Data out = numbered(type, {32, 8});
      auto body = [&](const Tensor& source, const Tensor& destination) {
        Value t = thread_idx().x;
        Fragment read = load_if(t % 3 != 0, source(t, 0), count);
        store_if(t % 2 == 0, destination(t, 0), read);
      };
      run({}, body, in, out);
      for (std::size_t t = 0; t < 32; ++t) {
        for (std::size_t i = 0; i < 8; ++i) {
          std::uint64_t old = pattern(type, t * 8 + i);
          bool written = t % 2 == 0 && i < static_cast<std::size_t>(count);
          std::uint64_t expected = !written ? old : t % 3 != 0 ? old : 0;
          ASSERT_EQ(out.bits[t * 8 + i], expected) << name(type) << ", thread " << t;
        }
      }
    }
  }
}

TEST_F(Memory, FragmentsHoldEveryElementApart) {
  for (Type type : kSizes) {
    for (int size : {1, 2, 3, 4, 5, 8, 11}) {
      Data in = numbered(type, {16});
      Data out(type, {16});
      auto body = [&](const Tensor& source, const Tensor& destination) {
        Fragment f(type, size);
        for (int i = size - 1; i >= 0; --i)  // from the end, so that words fill from above
          f[i] = source(i).load();
        Fragment kept = f.clone();
        f[0] = source(15).load();  // the clone has registers of its own
        Fragment back(type, size);
        back.assign(kept);
        for (int i = 0; i < size; ++i)
          destination(i) = back[i].get();
      };
      run({.threads = 1}, body, in, out);
      for (int i = 0; i < size; ++i) {
        auto k = static_cast<std::size_t>(i);
        ASSERT_EQ(out.bits[k], in.bits[k]) << name(type) << " of " << size << ", element " << i;
      }
    }
  }
}

TEST_F(Memory, FragmentsFillWithConstantsAndValues) {
  for (Type type : {u8, f16, bf16, s32, f64}) {
    Data out(type, {2, 5});
    auto body = [&](const Tensor& destination) {
      Fragment f(type, 5);
      f.fill(3);
      store(destination(0, 0), f);
      f.fill(block_idx().x.to(type));
      f[4] = 7;
      store(destination(1, 0), f);
    };
    run({.threads = 1}, body, out);
    auto number = [&](int x) {
      return is_float(type) ? real_bits(type, x) : static_cast<std::uint64_t>(x);
    };
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(out.bits[i], number(3)) << name(type);
      EXPECT_EQ(out.bits[5 + i], number(i == 4 ? 7 : 0)) << name(type);
    }
  }
}

TEST_F(Memory, FragmentsConvertAsTheirElementsDo) {
  constexpr Type kTypes[] = {s8, u8, s16, u16, s32, u32, s64, f16, bf16, f32, f64};
  for (Type from : kTypes) {
    for (Type to : kTypes) {
      for (int size : {1, 3, 4}) {
        Data in(from, {4});
        for (std::size_t i = 0; i < 4; ++i) {
          int number = static_cast<int>(i) * 37 - 50;
          in.bits[i] = is_float(from) ? real_bits(from, number * 1.37)
                                      : cut(from, static_cast<std::uint64_t>(number));
        }
        Data out(to, {4});
        auto body = [&](const Tensor& source, const Tensor& destination) {
          store(destination(0), load(source(0), size).to(to));
        };
        run({.threads = 1}, body, in, out);
        for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
          EXPECT_EQ(out.bits[i], convert(to, from, in.bits[i]))
              << name(from) << " to " << name(to) << ", " << size << " elements, element " << i;
        }
      }
    }
  }
}

TEST_F(Memory, FragmentsMapZipReduceAndPart) {
  Data in(f32, {8});
  for (std::size_t i = 0; i < 8; ++i)
    in.bits[i] = real_bits(f32, static_cast<double>(i + 1));
  Data out(f32, {8});
  auto body = [&](const Tensor& source, const Tensor& destination) {
    Fragment x = load(source(0), 7);
    Fragment squares = zip_map(x, x, [](const Value& a, const Value& b) { return a * b; });
    Fragment shifted = map(x, [](const Value& a) { return a; });  // hands its argument back
    shifted[0] = 100;
    auto add = [](const Value& a, const Value& b) { return a + b; };
    destination(0) = reduce(squares, add);
    destination(1) = reduce(x.part(2, 3), add);
    destination(2) = x[0].get();
    destination(3) = shifted[0].get();
    destination(4) = reduce(x * 2.0f + x - squares, add);
    Fragment part = x.part(4, 3);
    part[0] = 50;  // parts share registers
    destination(5) = x[4].get();
  };
  run({.threads = 1}, body, in, out);
  const double expected[] = {140, 12, 1, 100, 84 - 140, 50};
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(out.bits[i], real_bits(f32, expected[i])) << "result " << i;
}

TEST_F(Memory, FollowsStridesInAllModes) {
  for (std::uint32_t strides : {0u, 1u, 3u, 7u}) {
    Data in = numbered(s32, {3, 5, 7});
    Data out(s32, {7, 5, 3});
    auto body = [&](const Tensor& source, const Tensor& destination) {
      Value t = thread_idx().x;
      if_(t < 35, [&] {
        Value k = t % 7;
        Value j = t / 7;
        for_(3, [&](const Value& i) { destination(k, j, i) = source(i, j, k).load() + 1; });
      });
    };
    run({.threads = 64, .dynamic = {.extents = strides, .strides = strides}}, body, in, out);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 5; ++j) {
        for (std::size_t k = 0; k < 7; ++k) {
          ASSERT_EQ(out.bits[(k * 5 + j) * 3 + i], cut(s32, in.bits[(i * 5 + j) * 7 + k] + 1))
              << "dynamic modes " << strides;
        }
      }
    }
  }
}

TEST_F(Memory, ReachesBeyondFourGibibytes) {
  // One element far behind the other: the emulated device holds what is touched only.
  constexpr std::int64_t kStride = (std::int64_t{1} << 31) + 5;
  if (!emulated()) GTEST_SKIP() << "needs 8 GiB of device memory that only the emulator fakes";
  Buffer memory(device, kStride * 4 + 64);
  std::uint32_t seven = 7;
  memory.upload(std::as_bytes(std::span(&seven, 1)), 0);
  for (std::uint32_t dynamic : {0u, 1u}) {
    View view = make_view(memory.address(), u32, std::vector<std::int64_t>{2, 3},
                          std::vector<std::int64_t>{kStride, 1});
    TensorArg arg = tensor_arg(view, {.extents = dynamic, .strides = dynamic});
    auto body = [](const Tensor& t) {
      Value i = thread_idx().x;
      t(i + 1, i) = t(i, i).load() + 1;
    };
    TraceOptions options{.name = "far", .target = device.target(), .block = {1, 1, 1}};
    Kernel kernel = compile(device, trace(options, body, arg));
    Parameters parameters;
    pack(parameters, arg, view);
    kernel.launch({}, parameters, stream);
    stream.synchronize();
    std::uint32_t got = 0;
    memory.download(std::as_writable_bytes(std::span(&got, 1)), kStride * 4);
    EXPECT_EQ(got, 8u);
  }
}

TEST_F(Memory, TakesUnsignedIndicesBelowAndAbove) {
  Data in = numbered(u32, {100});
  Data out(u32, {32, 4});
  auto body = [&](const Tensor& source, const Tensor& destination) {
    Value t = thread_idx().x;
    Value u = t.to(u32);
    destination(t, 0) = source(u + 1u).load();
    destination(t, 1) = source((u + 5u) - 3u).load();
    destination(t, 2) = source((40u - u)).load();
    destination(t, 3) = source((u.to(u64) + 60u) - 20u).load();
  };
  run({}, body, in, out);
  for (std::size_t t = 0; t < 32; ++t) {
    EXPECT_EQ(out.bits[t * 4], in.bits[t + 1]);
    EXPECT_EQ(out.bits[t * 4 + 1], in.bits[t + 2]);
    EXPECT_EQ(out.bits[t * 4 + 2], in.bits[40 - t]);
    EXPECT_EQ(out.bits[t * 4 + 3], in.bits[t + 40]);
  }
}

TEST_F(Memory, CopiesRaggedTilesOfEveryElementSize) {
  for (Type type : {u8, f16, f32, f64}) {
    for (bool asynchronous : {false, true}) {
      const int vector = 4 / bytes(type) > 0 && asynchronous ? 4 / bytes(type) : 1;
      // Rows are whole vectors, the last tile is not.
      const std::int64_t columns = 21 * vector;
      Data in = numbered(type, {13, columns});
      Data out(type, {13, columns});
      auto body = [&](const Tensor& source, const Tensor& destination) {
        const Shape tile{8, 8 * vector};
        int width = vector * bits(type);
        TiledCopy write =
            tiled_copy(Universal{width}, type, make_row_major(Shape{4, 8}), Shape{1, vector});
        TiledCopy begin =
            asynchronous && width >= 32
                ? tiled_copy(CpAsync{width}, type, make_row_major(Shape{4, 8}), Shape{1, vector})
                : write;
        Coord at = coord(block_idx().y, block_idx().x);
        Bounds inside = in_bounds(source, tile, at);
        Tensor staged = shared(type, make_row_major(tile));
        copy_if(begin, local_tile(source, tile, at), staged, inside);
        cp_async_commit();
        cp_async_wait(0);
        barrier();
        copy_if(write, staged, local_tile(destination, tile, at), inside);
      };
      run({.grid = {3, 2}}, body, in, out);
      EXPECT_EQ(out.bits, in.bits) << name(type) << (asynchronous ? ", asynchronous" : "");
    }
  }
}

}  // namespace
}  // namespace tilewright::test

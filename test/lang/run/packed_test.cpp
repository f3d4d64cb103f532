// SPDX-License-Identifier: Apache-2.0
// Pairs compute what their halves compute, on targets with and without instructions for them.
#include "tilewright/packed.h"

#include "tilewright/buffer.h"
#include "tilewright/compile.h"
#include "tilewright/kernel.h"
#include "tilewright/module.h"
#include "tilewright/tensor.h"
#include "tilewright/thread.h"
#include "tilewright/trace.h"

#include <gtest/gtest.h>
#include <random>
#include <string>

namespace tilewright {
namespace {

struct Operation {
  const char* name;
  Value (*compute)(const Value& a, const Value& b);
};
constexpr Operation kOperations[] = {
    {"add", [](const Value& a, const Value& b) { return a + b; }},
    {"sub", [](const Value& a, const Value& b) { return a - b; }},
    {"mul", [](const Value& a, const Value& b) { return a * b; }},
    {"min", [](const Value& a, const Value& b) { return min(a, b); }},
    {"max", [](const Value& a, const Value& b) { return max(a, b); }},
    {"fma", [](const Value& a, const Value& b) { return fma(a, b, a); }}};

constexpr int kThreads = 128;

TensorArg vector_of(Type type) { return {type, Shape{kThreads}, Stride{1}, 16}; }

/// Counts threads in which a pair's halves differ from the results of its halves.
Traced compare(ptx::Target target, Type half, const Operation& operation) {
  Type bare = bits(half) == 32 ? u32 : u16;
  return trace(
      {.name = "compare", .target = target, .block = {kThreads, 1, 1}},
      [&](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& out) {
        Value i = thread_idx().x;
        Value x = a(i).load().bitcast(half), y = b(i).load().bitcast(half);
        Value z = c(i).load().bitcast(half), w = d(i).load().bitcast(half);
        Unpacked both = unpack(operation.compute(pack(x, y), pack(z, w)));
        Value low = operation.compute(x, z), high = operation.compute(y, w);
        Value same = both.low.bitcast(bare) == low.bitcast(bare) &&
                     both.high.bitcast(bare) == high.bitcast(bare);
        out(i) = select(same, constant(u32, 0), 1);
      },
      vector_of(bare), vector_of(bare), vector_of(bare), vector_of(bare), vector_of(u32));
}

TEST(Packed, PairsComputeWhatTheirHalvesDo) {
  constexpr std::uint32_t kSeed = 8;
  for (const char* name : {"emu:sm_80", "emu:sm_90a", "emu:sm_100a"}) {
    Device device = Device::open(name);
    Stream stream(device);
    for (Type half : {f16, bf16, u16, s16, f32}) {
      if (half == bf16 && device.target().sm < 90) continue;  // it has fma only
      std::mt19937 random(kSeed);
      std::vector<Buffer> inputs;
      for (int i = 0; i < 4; ++i) {
        std::vector<std::uint32_t> words(kThreads);
        for (std::uint32_t& word : words)
          word = static_cast<std::uint32_t>(random());
        inputs.push_back(upload(device, std::span<const std::uint32_t>(words)));
      }
      for (const Operation& operation : kOperations) {
        Buffer out(device, kThreads * std::int64_t{4});
        Parameters parameters;
        for (const Buffer& input : inputs)
          parameters.add(input.address());
        parameters.add(out.address());
        Kernel kernel = compile(device, compare(device.target(), half, operation));
        kernel.launch({.block = {kThreads}}, parameters, stream);
        for (std::uint32_t differs : download<std::uint32_t>(out))
          ASSERT_EQ(differs, 0u) << operation.name << " of " << tilewright::name(half) << " on "
                                 << name << ", seed " << kSeed;
      }
    }
  }
}

std::string text_of(const char* target, Type half, const Operation& operation) {
  Traced traced = compare(ptx::parse_target(target), half, operation);
  return ptx::print(traced.module());
}

TEST(Packed, UsesTheInstructionsThatATargetHas) {
  struct Row {
    const char* target;
    Type half;
    int operation;
    const char* instruction;
    bool used;
  };
  constexpr Row kRows[] = {
      {"sm_80", f16, 5, "fma.rn.f16x2", true},   {"sm_90a", u16, 0, "add.u16x2", true},
      {"sm_80", u16, 0, "add.u16x2", false},     {"sm_90a", s16, 4, "max.s16x2", true},
      {"sm_100a", f32, 5, "fma.rn.f32x2", true}, {"sm_90a", f32, 5, "fma.rn.f32x2", false}};
  for (const Row& row : kRows) {
    std::string text = text_of(row.target, row.half, kOperations[row.operation]);
    EXPECT_EQ(text.find(row.instruction) != std::string::npos, row.used)
        << row.instruction << " on " << row.target;
  }
}

TEST(Packed, RefusesOtherTypes) {
  try {
    trace({.name = "none", .block = {1, 1, 1}}, [] { pack(constant(f64, 1), constant(f64, 2)); });
    FAIL() << "f64 has no pairs";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "pack: not defined for f64; it takes f16, bf16, u16, s16 and f32");
  }
}

}  // namespace
}  // namespace tilewright

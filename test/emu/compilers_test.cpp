// SPDX-License-Identifier: Apache-2.0
// PTX of compilers other than nvcc: NVRTC 13.5 (test/data/ptx_nvrtc) and CuTe DSL 4.8
// (test/data/ptx_cute_dsl). Triton's is in triton_test.cpp.
#include "emu/half_tiles.h"
#include "emu/programs.h"

#include <cmath>

namespace tilewright::emu {
namespace {

using test::expect_clean;
using test::half;
using test::module_of;
using test::schedules;
using test::tiles_of;

struct Call {
  std::string file;
  Dim3 grid, block;
  std::int64_t dynamic_smem_bytes = 0;
  std::string entry = {};  ///< empty: the only one
};

/// A machine, and arguments in the order of the parameters.
class Compilers : public testing::Test {
 protected:
  template <class T>
  std::uint64_t upload(Machine& machine, const std::vector<T>& data) {
    const auto bytes = std::as_bytes(std::span(data));
    const std::uint64_t address = machine.allocate(static_cast<std::int64_t>(bytes.size()));
    machine.write(address, bytes);
    arg(address);
    return address;
  }
  std::uint64_t output(Machine& machine, std::int64_t bytes) {
    const std::uint64_t address = machine.allocate(bytes);
    machine.fill(address, bytes, 0);
    arg(address);
    return address;
  }
  template <class T>
  void arg(const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    arguments.emplace_back(bytes.begin(), bytes.end());
  }
  void run(Machine& machine, const Call& call, const Options& options = {}) {
    const ptx::Module& module = module_of(call.file);
    Launch launch;
    launch.program = machine.load(module);
    launch.entry = call.entry;
    for (const ptx::Function& f : module.functions)
      if (f.entry && call.entry.empty()) launch.entry = f.name;
    launch.grid = call.grid;
    launch.block = call.block;
    launch.dynamic_smem_bytes = call.dynamic_smem_bytes;
    const std::vector<ParamSlot> slots = parameters(launch.program, launch.entry);
    ASSERT_EQ(slots.size(), arguments.size());
    launch.params.resize(static_cast<std::size_t>(slots.back().offset + slots.back().bytes));
    for (std::size_t i = 0; i < slots.size(); ++i) {
      ASSERT_EQ(slots[i].bytes, static_cast<std::int64_t>(arguments[i].size()));
      std::copy(arguments[i].begin(), arguments[i].end(), launch.params.begin() + slots[i].offset);
    }
    expect_clean(machine.launch(launch, options), options);
  }
  template <class T>
  static std::vector<T> download(const Machine& machine, std::uint64_t address, std::size_t count) {
    std::vector<T> out(count);
    machine.read(address, std::as_writable_bytes(std::span(out)));
    return out;
  }

  std::vector<std::vector<std::byte>> arguments;
};

std::vector<float> numbers(std::size_t count) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(i);
  return out;
}

TEST_F(Compilers, NvrtcSumsRows) {
  for (const std::string target : {"sm_80", "sm_90a"}) {
    Machine machine(ptx::parse_target(target));
    arguments.clear();
    upload(machine, numbers(300));
    const std::uint64_t out = output(machine, 12);
    arg(100);
    run(machine, {"ptx_nvrtc/kernels_" + target + ".ptx", {3, 1, 1}, {64, 1, 1}, 0, "row_sums"});
    EXPECT_EQ(download<float>(machine, out, 3), (std::vector<float>{4950, 14950, 24950}));
  }
}

TEST_F(Compilers, NvrtcPassesAStructByValue) {
  Machine machine(ptx::parse_target("sm_90a"));
  upload(machine, std::vector<double>{-2, -0.5, 0, 3});
  const std::uint64_t out = output(machine, 32);
  arg(std::array<double, 5>{1, 2, 3, 4, 5});
  arg(4);
  run(machine, {"ptx_nvrtc/kernels_sm_90a.ptx", {1, 1, 1}, {32, 1, 1}, 0, "polynomial"});
  const std::vector<double> y = download<double>(machine, out, 4);
  const double x[] = {-2, -0.5, 0, 3};
  for (std::size_t i = 0; i < 4; ++i) {
    double p = 0;
    for (int k = 5; k-- > 0;)
      p = std::fma(p, x[i], k + 1);
    EXPECT_EQ(y[i], p / (1 + std::sqrt(std::abs(x[i])))) << i;
  }
}

TEST_F(Compilers, CuteDslScales) {
  Machine machine(ptx::parse_target("sm_90a"));
  upload(machine, numbers(512));
  const std::uint64_t out = output(machine, 2048);
  arg(2.0F);
  run(machine, {"ptx_cute_dsl/scale.ptx", {4, 1, 1}, {128, 1, 1}});
  std::vector<float> expected = numbers(512);
  for (float& v : expected)
    v *= 2;
  EXPECT_EQ(download<float>(machine, out, 512), expected);
}

TEST_F(Compilers, CuteDslReversesThroughSharedMemory) {
  Machine machine(ptx::parse_target("sm_90a"));
  upload(machine, numbers(512));
  const std::uint64_t out = output(machine, 2048);
  run(machine, {"ptx_cute_dsl/reverse.ptx", {4, 1, 1}, {128, 1, 1}, 1024});
  const std::vector<float> y = download<float>(machine, out, 512);
  for (std::size_t i = 0; i < 512; ++i)
    EXPECT_EQ(y[i], static_cast<float>(i / 128 * 128 + 127 - i % 128));
}

TEST_F(Compilers, CuteDslTakesNormsOfRowsThatCpAsyncBrought) {
  for (const Options& o : schedules()) {
    Machine machine(ptx::parse_target("sm_90a"));
    arguments.clear();
    std::vector<float> x(3 * 1024);
    std::array<double, 3> squares{};
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i * 7 % 11);
      squares[i / 1024] += double{x[i]} * x[i];
    }
    upload(machine, x);
    const std::uint64_t out = output(machine, 12);
    run(machine, {"ptx_cute_dsl/row_norms.ptx", {3, 1, 1}, {128, 1, 1}, 5120}, o);
    const std::vector<float> y = download<float>(machine, out, 3);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(y[i], std::sqrt(static_cast<float>(squares[i])));
  }
}

/// A ring of tensor copies (PipelineTmaAsync) in front of wgmma, whose elected threads issue them.
TEST_F(Compilers, CuteDslMultipliesMatricesOfTensorMaps) {
  constexpr int kRows = 64, kColumns = 128, kDepth = 192;
  const auto value = [](int i) { return i * 31 % 17 % 4; };
  std::vector<std::uint16_t> a, b;
  for (int i = 0; i < kRows * kDepth; ++i)
    a.push_back(half(value(i)));
  for (int i = 0; i < kColumns * kDepth; ++i)
    b.push_back(half(value(i + 5)));
  std::vector<float> c;
  for (int i = 0; i < kRows * kColumns; ++i) {
    int sum = 0;
    for (int k = 0; k < kDepth; ++k)
      sum += value(i / kColumns * kDepth + k) * value(i % kColumns * kDepth + k + 5);
    c.push_back(static_cast<float>(sum));
  }
  for (const Options& o : schedules()) {
    Machine machine(ptx::parse_target("sm_90a"));
    arguments.clear();
    const std::uint64_t at_a = upload(machine, a), at_b = upload(machine, b);
    arguments.clear();
    arg(std::uint8_t{0});
    arg(tiles_of(at_a, kRows, kDepth));
    arg(tiles_of(at_b, kColumns, kDepth));
    const std::uint64_t out = output(machine, 4 * kRows * kColumns);
    run(machine, {"ptx_cute_dsl/multiply.ptx", {1, 2, 1}, {128, 1, 1}, 33792}, o);
    EXPECT_EQ(download<float>(machine, out, c.size()), c);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilewright::emu

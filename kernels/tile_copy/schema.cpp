// SPDX-License-Identifier: Apache-2.0
// The operator tile_copy as the command line and bindings see it.
#include "kernels/tile_copy/tile_copy.h"

#include <array>

namespace tilewright {
namespace {

constexpr std::array kTypes{f16, bf16, f32, f64, b8,  u8,   s8,  u16,
                            s16, u32,  s32, u64, s64, e4m3, e5m2};
constexpr std::array<TensorSpec, 2> kTensors{{
    {.name = "src",
     .role = Role::input,
     .shape = "M,N",
     .types = kTypes,
     .doc = "rows may lie apart; elements of a row are contiguous"},
    {.name = "dst",
     .role = Role::output,
     .shape = "M,N",
     .types = kTypes,
     .doc = "the type of src; apart from src in memory"},
}};
constexpr std::array<std::string_view, 1> kAuto{"auto"};
constexpr std::array<OptionSpec, 2> kOptions{{
    {.name = "tile_m",
     .type = OptionType::integer,
     .default_text = "auto",
     .words = kAuto,
     .least = 1,
     .most = 16384,
     .doc = "rows of a tile"},
    {.name = "threads",
     .type = OptionType::integer,
     .default_text = "auto",
     .words = kAuto,
     .least = 32,
     .most = 1024,
     .doc = "threads of a block, a multiple of 32"},
}};
constexpr std::array<std::string_view, 3> kBenchProblems{
    "M=8192,N=8192,src=f16", "M=32768,N=32768,src=f16", "M=8192,N=8191,src=f16"};

TileCopyOptions options_of(const Arguments& arguments) {
  TileCopyOptions options;
  options.tile_m = static_cast<int>(arguments.integer_or_word("tile_m").value_or(0));
  options.threads = static_cast<int>(arguments.integer_or_word("threads").value_or(0));
  return options;
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  const View& src = arguments.tensor("src");
  return {{"dst", src.type, {src.shape[0], src.shape[1]}}};
}

void launch(const Device& device, const Stream& stream, const Arguments& arguments) {
  static_cast<void>(device);
  tile_copy(stream, arguments.tensor("src"), arguments.tensor("dst"), options_of(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  static_cast<void>(arguments);
  Array copy = tensors.at("src");
  copy.name = "dst";
  tensors.set(std::move(copy));
}

Tolerance tolerance(const Arguments&, std::string_view) { return {}; }  // the same bits

std::int64_t bytes(const Arguments& arguments) { return 2 * size_bytes(arguments.tensor("src")); }

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  DeviceProperties device;
  device.sm_count = 1;  // the grid's size is no part of the code
  const View& src = arguments.tensor("src");
  TileCopyPlan plan = plan_tile_copy(device, src, arguments.tensor("dst"), options_of(arguments));
  std::vector<Traced> traced;
  traced.push_back(plan.trace(target));
  return traced;
}

constexpr Operator kTileCopy{
    .schema = {.name = "tile_copy",
               .version = 1,
               .formula = "dst = src",
               .doc = "Copies a matrix of any shape, row strides and element size.",
               .tensors = kTensors,
               .options = kOptions},
    .outputs = outputs,
    .launch = launch,
    .reference = reference,
    .tolerance = tolerance,
    .bytes = bytes,
    .trace = trace,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& tile_copy_operator() { return kTileCopy; }

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// The operator transpose as the command line and bindings see it.
#include "kernels/transpose/transpose.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr std::array kTypes{f16, bf16, f32, f64, b8,  u8,   s8,  u16,
                            s16, u32,  s32, u64, s64, e4m3, e5m2};
constexpr std::array<TensorSpec, 2> kTensors{{
    {.name = "src",
     .role = Role::input,
     .shape = "...,M,N",
     .types = kTypes,
     .doc = "a matrix, or a batch of them"},
    {.name = "dst",
     .role = Role::output,
     .shape = "...,N,M",
     .types = kTypes,
     .doc = "the type of src; apart from src in memory"},
}};
constexpr std::array<std::string_view, 3> kBenchProblems{
    "M=8192,N=8192,src=f16", "M=8192,N=8192,src=f32", "M=8191,N=8190,src=f16"};

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  const View& src = arguments.tensor("src");
  if (src.rank < 2) arguments.fail("src is " + to_string(src) + "; it must have rank 2 or 3");
  std::vector<std::int64_t> shape(src.shape.begin(), src.shape.begin() + src.rank);
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return {{"dst", src.type, std::move(shape)}};
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  transpose(stream, arguments.tensor("src"), arguments.tensor("dst"));
}

void reference(const Arguments&, HostTensors& tensors) {
  const Array& src = tensors.at("src");
  std::vector<std::int64_t> shape = src.shape;
  std::int64_t m = shape[shape.size() - 2];
  std::int64_t n = shape[shape.size() - 1];
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  Array dst = make_array("dst", src.type, shape);
  std::int64_t size = bytes(src.type);
  std::int64_t count = element_count(shape);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t matrix = i / (m * n) * m * n;
    std::int64_t row = (i - matrix) / n;
    std::int64_t column = (i - matrix) % n;
    std::copy_n(src.bytes.begin() + i * size, size,
                dst.bytes.begin() + (matrix + column * m + row) * size);
  }
  tensors.set(std::move(dst));
}

Tolerance tolerance(const Arguments&, std::string_view) { return {}; }  // the same bits

std::int64_t moved_bytes(const Arguments& arguments) {
  return 2 * size_bytes(arguments.tensor("src"));
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(
      plan_transpose(DeviceProperties{}, arguments.tensor("src"), arguments.tensor("dst"))
          .trace(target));
  return traced;
}

constexpr Operator kTranspose{
    .schema = {.name = "transpose",
               .version = 1,
               .formula = "dst[..., n, m] = src[..., m, n]",
               .doc = "Transposes a matrix, or a batch of them.",
               .tensors = kTensors,
               .options = {}},
    .outputs = outputs,
    .launch = launch,
    .reference = reference,
    .tolerance = tolerance,
    .bytes = moved_bytes,
    .trace = trace,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& transpose_operator() { return kTranspose; }

}  // namespace tilewright

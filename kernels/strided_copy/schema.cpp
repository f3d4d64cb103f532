// SPDX-License-Identifier: Apache-2.0
// The operator strided_copy as the command line and bindings see it.
#include "kernels/strided_copy/strided_copy.h"

#include <array>

namespace tilewright {
namespace {

constexpr std::array kTypes{f16, bf16, f32, f64, b8,  u8,   s8,  u16,
                            s16, u32,  s32, u64, s64, e4m3, e5m2};
constexpr std::array<TensorSpec, 2> kTensors{{
    {.name = "src",
     .role = Role::input,
     .shape = "...,D",
     .types = kTypes,
     .doc = "one to five modes; strides of at least 0, and 0 repeats elements"},
    {.name = "dst",
     .role = Role::output,
     .shape = "...,D",
     .types = kTypes,
     .doc = "the shape of src, strides that keep elements apart; apart from src in memory"},
}};
constexpr std::array<std::string_view, 4> kOutTypes{"as_src", "bf16", "f16", "f32"};
constexpr std::array<OptionSpec, 1> kOptions{{
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "as_src",
     .words = kOutTypes,
     .doc = "type of dst; another than src's casts bf16, f16, f32, e4m3 or e5m2"},
}};
constexpr std::array<std::string_view, 3> kBenchProblems{"T=8192,D=8192,src=f32,out_type=bf16",
                                                         "T=8192,D=8192,src=bf16,out_type=f32",
                                                         "T=8192,D=8191,src=f16"};

Type out_type(const Arguments& arguments) {
  const std::string_view text = arguments.text("out_type");
  return text == "as_src" ? arguments.tensor("src").type : *type_from_name(text);
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  const View& src = arguments.tensor("src");
  return {{"dst", out_type(arguments), {src.shape.begin(), src.shape.begin() + src.rank}}};
}

/// dst, which has the type that out_type says.
const View& checked_dst(const Arguments& arguments) {
  const View& dst = arguments.tensor("dst");
  if (dst.type != out_type(arguments)) {
    arguments.fail("dst has type " + std::string(name(dst.type)) +
                   "; out_type=" + std::string(arguments.text("out_type")) + " asks for " +
                   std::string(name(out_type(arguments))));
  }
  return dst;
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  strided_copy(stream, arguments.tensor("src"), checked_dst(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  const Array& src = tensors.at("src");
  const Type type = out_type(arguments);
  Array dst = src;
  if (type != src.type) dst = make_array("dst", type, src.shape, to_doubles(src));
  dst.name = "dst";
  tensors.set(std::move(dst));
}

Tolerance tolerance(const Arguments&, std::string_view) { return {}; }  // the same bits

std::int64_t moved_bytes(const Arguments& arguments) {
  const View& src = arguments.tensor("src");
  return size_bytes(src) + size(src) * bytes(out_type(arguments));
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(
      plan_strided_copy(DeviceProperties{}, arguments.tensor("src"), checked_dst(arguments))
          .trace(target));
  return traced;
}

constexpr Operator kStridedCopy{
    .schema = {.name = "strided_copy",
               .version = 1,
               .formula = "dst[i, ...] = src[i, ...], in dst's type",
               .doc = "Copies a tensor of any strides, permuted or repeated, or casts it.",
               .tensors = kTensors,
               .options = kOptions,
               .limits =
                   "Five modes; elements of dst do not overlap each other or src. Casts are to "
                   "bf16, f16 and f32."},
    .outputs = outputs,
    .launch = launch,
    .reference = reference,
    .tolerance = tolerance,
    .bytes = moved_bytes,
    .trace = trace,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& strided_copy_operator() { return kStridedCopy; }

}  // namespace tilewright

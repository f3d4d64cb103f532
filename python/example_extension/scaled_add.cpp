// SPDX-License-Identifier: Apache-2.0
// A kernel and its operator, outside of Tilewright's tree, as a Python module.
#include "python/operator_call.h"
#include "tilewright/cache.h"
#include "tilewright/tilewright.h"

#include <array>

namespace tw = tilewright;

namespace {

constexpr int kThreads = 128;

// The device's side: traced once for each alpha.
struct ScaledAdd {
  float alpha = 1;

  void operator()(const tw::Tensor& x, const tw::Tensor& y, const tw::Tensor& out) const {
    tw::Value i = tw::block_idx().x * tw::block_dim().x + tw::thread_idx().x;
    tw::Value n = tw::to_value(x.shape()[0].value());
    tw::if_(i < n, [&] { out(i) = tw::fma(x(i).load(), alpha, y(i).load()); });
  }
};

// What callers see: tensors with types and shapes, options with defaults.
constexpr std::array kF32{tw::f32};
constexpr std::array<tw::TensorSpec, 3> kTensors{{
    {.name = "x", .shape = "N", .types = kF32},
    {.name = "y", .shape = "N", .types = kF32},
    {.name = "out", .role = tw::Role::output, .shape = "N", .types = kF32, .may_alias = "y"},
}};
constexpr std::array<tw::OptionSpec, 1> kOptions{
    {{.name = "alpha", .default_text = "1", .doc = "factor of x"}}};

std::vector<tw::OutputSpec> outputs(const tw::Arguments& arguments) {
  return {{"out", tw::f32, {arguments.size("N")}}};
}

void launch(const tw::Device& device, const tw::Stream& stream, const tw::Arguments& arguments) {
  arguments.check(tw::Arguments::Outputs::required);
  const std::int64_t count = arguments.size("N");
  if (count == 0) return;
  const ScaledAdd body{static_cast<float>(arguments.real("alpha"))};
  // The extent and the stride stay parameters: one specialisation serves every vector.
  const tw::View& x = arguments.tensor("x");
  const tw::TensorArg arg = tw::tensor_arg(x, {.extents = 1, .strides = 1});
  const std::string key = "scaled_add 1 alpha=" + std::to_string(body.alpha);
  const auto trace = [&](tw::ptx::LineInfo lines) {
    const tw::TraceOptions options{
        .name = "scaled_add", .target = device.target(), .block = {kThreads, 1, 1}};
    return tw::source_of(tw::trace(options, body, arg, arg, arg), lines);
  };
  const tw::Kernel kernel = tw::KernelCache::global().get(device, key, trace);
  tw::Parameters parameters;
  for (const char* name : {"x", "y", "out"})
    tw::pack(parameters, arg, arguments.tensor(name));
  const int blocks = static_cast<int>((count + kThreads - 1) / kThreads);
  kernel.launch({.grid = {blocks}, .block = {kThreads}}, parameters, stream);
}

constexpr tw::Operator kScaledAdd{.schema = {.name = "scaled_add",
                                             .formula = "out = alpha x + y",
                                             .doc = "Adds a multiple of x to y.",
                                             .tensors = kTensors,
                                             .options = kOptions},
                                  .outputs = outputs,
                                  .launch = launch};

}  // namespace

NB_MODULE(_scaled_add, module) {
  tilewright::python::bind_operator_call(module);
  tilewright::python::add_operator(module, kScaledAdd);
}

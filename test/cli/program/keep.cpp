// SPDX-License-Identifier: Apache-2.0
// The tunable test operator: schema, space, a kernel that writes what it reads.
#include "cli/program/keep.h"

#include "tilewright/cache.h"
#include "tilewright/compile.h"
#include "tilewright/control.h"
#include "tilewright/thread.h"
#include "tilewright/tune.h"

#include <array>

namespace tilewright::test {
namespace {

constexpr Type kTypes[] = {Type::f32};
constexpr TensorSpec kTensors[] = {
    {.name = "x", .role = Role::inout, .shape = "N", .types = kTypes, .doc = "stays"},
};

constexpr std::string_view kDefects[] = {"none", "wrong"};
constexpr OptionSpec kOptions[] = {{.name = "defect",
                                    .type = OptionType::choice,
                                    .default_text = "none",
                                    .words = kDefects,
                                    .doc = "what the reference is"}};

constexpr std::array kThreads{32, 64, 128};
constexpr std::array<tune::KeySpec, 1> kKeys{{{"n", tune::Match::nearest}}};
constexpr std::array<tune::Knob, 1> kKnobs{{{"threads", kThreads}}};
constexpr std::array<tune::Reducible, 1> kReducible{{{"N", 128}}};
constexpr tune::Space kSpace{
    .name = "keep",
    .keys = kKeys,
    .knobs = kKnobs,
    .standard = [](const DeviceProperties&, const tune::Key&) { return tune::Config{64}; },
    .valid = [](const DeviceProperties&, const tune::Key&,
                const tune::Config& config) { return config[0] >= 32 && config[0] <= 1024; },
    .reducible = kReducible};

std::vector<OutputSpec> outputs(const Arguments&) { return {}; }

int threads_for(const DeviceProperties& device, const Arguments& arguments) {
  return tune::choose(kSpace, device, {arguments.size("N")})[0];
}

TensorArg x_arg(const Arguments& arguments) {
  return tensor_arg(arguments.tensor("x"), {.extents = 1});
}

Traced traced(const Arguments& arguments, int threads, ptx::Target target) {
  const TraceOptions options{.name = "keep", .target = target, .block = {threads, 1, 1}};
  const auto body = [threads](const Tensor& x) {
    Value i = block_idx().x * threads + thread_idx().x;
    if_(i < to_value(x.shape()[0].value()), [&] { x(i) = Value(x(i)); });
  };
  return tilewright::trace(options, body, x_arg(arguments));
}

void launch(const Device& device, const Stream& stream, const Arguments& arguments) {
  arguments.check(Arguments::Outputs::required);
  const int threads = threads_for(device.properties(), arguments);
  const std::string key = "test keep 1 t=" + std::to_string(threads) + to_string(x_arg(arguments));
  const Kernel kernel = KernelCache::global().get(device, key, [&](ptx::LineInfo info) {
    return source_of(traced(arguments, threads, device.target()), info);
  });
  Parameters parameters;
  pack(parameters, x_arg(arguments), arguments.tensor("x"));
  const auto blocks = static_cast<int>((arguments.size("N") + threads - 1) / threads);
  kernel.launch({.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, parameters, stream);
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  const Array& x = tensors.at("x");
  std::vector<double> values = to_doubles(x);
  for (double& value : values)
    value += arguments.text("defect") == "wrong" ? 1 : 0;
  tensors.set(make_array("x", Type::f64, x.shape, values));
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> kernels;
  kernels.push_back(traced(arguments, threads_for(DeviceProperties{}, arguments), target));
  return kernels;
}

}  // namespace

const Operator& keep_operator() {
  static const Operator op = {
      .schema = {.name = "keep",
                 .formula = "x = x",
                 .doc = "has a space",
                 .tensors = kTensors,
                 .options = kOptions},
      .outputs = outputs,
      .launch = launch,
      .reference = reference,
      .trace = trace,
  };
  return op;
}

}  // namespace tilewright::test

// SPDX-License-Identifier: Apache-2.0
// The test operator: schema, hand-written PTX, reference.
#include "cli/program/scale.h"

#include "tilewright/cache.h"
#include "tilewright/kernel.h"
#include "tilewright/module.h"
#include "tilewright/trace.h"

namespace tilewright::test {
namespace {

constexpr int kThreads = 64;

// Parameter `defect`: 1 makes the last element wrong, 2 writes one element past the end.
constexpr const char* kPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 px, .param .u64 py, .param .u64 pz, .param .u32 pn,
                      .param .f32 pf, .param .u32 pd)
{
  .reg .pred %p<8>;
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  ld.param.u64 %rd3, [pz];
  ld.param.u32 %r1, [pn];
  ld.param.f32 %f1, [pf];
  ld.param.u32 %r2, [pd];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra done;
  mul.wide.u32 %rd4, %r6, 4;
  add.u64 %rd5, %rd1, %rd4;
  add.u64 %rd6, %rd2, %rd4;
  add.u64 %rd7, %rd3, %rd4;
  ld.global.f32 %f2, [%rd5];
  mul.rn.f32 %f3, %f2, %f1;
  add.u32 %r7, %r6, 1;
  setp.eq.u32 %p2, %r7, %r1;
  setp.eq.u32 %p3, %r2, 1;
  and.pred %p4, %p2, %p3;
  @%p4 add.rn.f32 %f3, %f3, 0f3F800000;
  st.global.f32 [%rd6], %f3;
  setp.ne.u64 %p5, %rd3, 0;
  @%p5 st.global.f32 [%rd7], %f2;
  setp.eq.u32 %p6, %r2, 2;
  and.pred %p7, %p2, %p6;
  @%p7 st.global.f32 [%rd6+4], %f3;
done:
  ret;
}
)";

constexpr Type kTypes[] = {Type::f32};
constexpr std::string_view kDefects[] = {"none", "wrong", "out_of_bounds"};
constexpr TensorSpec kTensors[] = {
    {.name = "x", .shape = "N", .types = kTypes, .doc = "what is scaled"},
    {.name = "y", .role = Role::output, .shape = "N", .types = kTypes, .doc = "factor * x"},
    {.name = "z",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "N",
     .types = kTypes,
     .doc = "a copy of x"},
};
constexpr OptionSpec kOptions[] = {
    {.name = "factor", .default_text = "2", .least = 0, .most = 100, .doc = "what x is scaled by"},
    {.name = "defect",
     .type = OptionType::choice,
     .default_text = "none",
     .words = kDefects,
     .doc = "what goes wrong"},
};
constexpr std::string_view kProblems[] = {"N=256"};

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  const std::vector<std::int64_t> shape = {arguments.size("N")};
  return {{"y", Type::f32, shape}, {"z", Type::f32, shape}};
}

void launch(const Device& device, const Stream& stream, const Arguments& arguments) {
  arguments.check(Arguments::Outputs::required);
  const auto count = static_cast<std::uint32_t>(arguments.size("N"));
  if (count == 0) return;
  const auto trace = [](ptx::LineInfo) { return KernelSource{kPtx, "scale", {}}; };
  const Kernel kernel = KernelCache::global().get(device, "test scale 1", trace);
  const std::string_view defect = arguments.text("defect");
  const std::uint32_t number = defect == "wrong" ? 1 : defect == "out_of_bounds" ? 2 : 0;
  const View* copy = arguments.find("z");
  Parameters parameters;
  parameters.add(arguments.tensor("x").address)
      .add(arguments.tensor("y").address)
      .add(copy == nullptr ? std::uint64_t{0} : copy->address)
      .add(count)
      .add(static_cast<float>(arguments.real("factor")))
      .add(number);
  const LaunchConfig config{.grid = {static_cast<int>((count + kThreads - 1) / kThreads), 1, 1},
                            .block = {kThreads, 1, 1},
                            .cluster = {}};
  kernel.launch(config, parameters, stream);
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  const std::vector<double> x = to_doubles(tensors.at("x"));
  std::vector<double> y;
  for (double value : x)
    y.push_back(value * arguments.real("factor"));
  const std::vector<std::int64_t> shape = tensors.at("x").shape;
  tensors.set(make_array("y", Type::f64, shape, y));
  tensors.set(make_array("z", Type::f64, shape, x));
}

Tolerance tolerance(const Arguments&, std::string_view output) {
  return {.relative = output == "z" ? 0 : 0x1p-23};
}

std::int64_t bytes(const Arguments& arguments) { return 8 * arguments.size("N"); }

std::vector<Traced> trace(const Arguments&, ptx::Target) {
  std::vector<Traced> kernels(1);
  kernels.front().module() = ptx::parse(kPtx, "scale.ptx");
  kernels.front().entry = "scale";
  return kernels;
}

}  // namespace

const Operator& scale_operator() {
  static const Operator op = {
      .schema = {.name = "scale",
                 .formula = "y = factor * x",
                 .doc = "scales, for tests",
                 .tensors = kTensors,
                 .options = kOptions},
      .outputs = outputs,
      .launch = launch,
      .reference = reference,
      .tolerance = tolerance,
      .bytes = bytes,
      .trace = trace,
      .bench_problems = kProblems,
  };
  return op;
}

}  // namespace tilewright::test

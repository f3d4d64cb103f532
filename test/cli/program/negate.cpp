// SPDX-License-Identifier: Apache-2.0
// The in-place test operator: schema, hand-written PTX, reference.
#include "cli/program/negate.h"

#include "tilewright/cache.h"
#include "tilewright/kernel.h"
#include "tilewright/trace.h"

namespace tilewright::test {
namespace {

constexpr int kThreads = 64;

constexpr const char* kPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry negate(.param .u64 px, .param .u32 pn)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [px];
  ld.param.u32 %r1, [pn];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  neg.f32 %f2, %f1;
  st.global.f32 [%rd3], %f2;
done:
  ret;
}
)";

constexpr Type kTypes[] = {Type::f32};
constexpr TensorSpec kTensors[] = {
    {.name = "x", .role = Role::inout, .shape = "N", .types = kTypes, .doc = "what is negated"},
};

std::vector<OutputSpec> outputs(const Arguments&) { return {}; }

void launch(const Device& device, const Stream& stream, const Arguments& arguments) {
  arguments.check(Arguments::Outputs::required);
  const auto count = static_cast<std::uint32_t>(arguments.size("N"));
  const auto trace = [](ptx::LineInfo) { return KernelSource{kPtx, "negate", {}}; };
  const Kernel kernel = KernelCache::global().get(device, "test negate 1", trace);
  Parameters parameters;
  parameters.add(arguments.tensor("x").address).add(count);
  const LaunchConfig config{.grid = {static_cast<int>((count + kThreads - 1) / kThreads), 1, 1},
                            .block = {kThreads, 1, 1},
                            .cluster = {}};
  kernel.launch(config, parameters, stream);
}

void reference(const Arguments&, HostTensors& tensors) {
  std::vector<double> values = to_doubles(tensors.at("x"));
  for (double& value : values)
    value = -value;
  tensors.set(make_array("x", Type::f64, tensors.at("x").shape, values));
}

std::int64_t bytes(const Arguments& arguments) { return 8 * arguments.size("N"); }

}  // namespace

const Operator& negate_operator() {
  static const Operator op = {
      .schema = {.name = "negate", .formula = "x = -x", .doc = "in place", .tensors = kTensors},
      .outputs = outputs,
      .launch = launch,
      .reference = reference,
      .bytes = bytes,
  };
  return op;
}

}  // namespace tilewright::test

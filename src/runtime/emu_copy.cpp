// SPDX-License-Identifier: Apache-2.0
// The kernels that stand for copies: words where all is aligned, else bytes.
#include "runtime/emu_copy.h"

#include "tilewright/module.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace tilewright::detail {

namespace {

/// Threads of one block take turns; what is written differs from what was there, so that it is no
/// harmless rewriting of the same value.
std::string kernel(const std::string& name, const std::string& type, int bytes) {
  return ".visible .entry " + name + R"((.param .u64 from, .param .u64 to, .param .u64 bytes)
{
  .reg .pred %p<3>; .reg .b32 %r<3>; .reg .b64 %rd<6>;
  ld.param.u64 %rd0, [from];
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [bytes];
  setp.eq.u64 %p0, %rd0, 0;
  setp.eq.u64 %p1, %rd1, 0;
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd3, %r0, )" +
         std::to_string(bytes) + R"(;
again:
  setp.ge.u64 %p2, %rd3, %rd2;
  @%p2 bra done;
  add.u64 %rd4, %rd0, %rd3;
  add.u64 %rd5, %rd1, %rd3;
  @!%p0 ld.global.)" +
         type + R"( %r1, [%rd4];
  @!%p1 ld.global.)" +
         type + R"( %r2, [%rd5];
  not.b32 %r2, %r2;
  @!%p1 st.global.)" +
         type + R"( [%rd5], %r2;
  add.u64 %rd3, %rd3, )" +
         std::to_string(256 * bytes) + R"(;
  bra again;
done:
  ret;
}
)";
}

constexpr std::uint32_t kThreads = 256;

}  // namespace

std::vector<emu::Diagnostic> CopyChecker::check(const CopiedBytes& copied,
                                                const emu::LaunchOrder& order,
                                                const emu::Options& options) {
  const std::int64_t apart = static_cast<std::int64_t>(copied.to - copied.from);
  const bool overlap = copied.from != 0 && copied.to != 0 && std::abs(apart) < copied.bytes;
  if (copied.bytes == 0 || copied.bytes > kMostBytes || overlap) return {};
  if (program_.code == nullptr) {
    const std::string text = ".version 7.0\n.target sm_52\n.address_size 64\n" +
                             kernel("copy_words", "b32", 4) + kernel("copy_bytes", "b8", 1);
    program_ = machine_.load(ptx::parse(text, "copy.ptx"));
  }
  const bool words =
      ((copied.from | copied.to | static_cast<std::uint64_t>(copied.bytes)) & 3) == 0;
  emu::Launch launch;
  launch.program = program_;
  launch.entry = words ? "copy_words" : "copy_bytes";
  launch.block.x = kThreads;
  launch.params.resize(24);
  std::memcpy(launch.params.data(), &copied.from, 8);
  std::memcpy(launch.params.data() + 8, &copied.to, 8);
  std::memcpy(launch.params.data() + 16, &copied.bytes, 8);
  launch.order = order;
  emu::Options races;
  races.checks = emu::parse_checks("race");
  races.checks.bits &= options.checks.bits;
  races.limits = options.limits;
  return machine_.launch(launch, races).findings;
}

}  // namespace tilewright::detail

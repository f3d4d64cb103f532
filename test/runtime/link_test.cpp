// SPDX-License-Identifier: Apache-2.0
// Kernels linked with objects of the user's by nvJitLink; skipped where there is none.
#include "runtime/assemblers.h"
#include "runtime/process.h"
#include "runtime/traced_fixture.h"
#include "tilewright/function.h"
#include "tilewright/module.h"
#include "tilewright/thread.h"

// nvJitLink 13.0 leaks memory of its own where a link fails.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): LeakSanitizer's name
extern "C" const char* __lsan_default_suppressions();
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __lsan_default_suppressions() { return "leak:libnvJitLink\n"; }

namespace tilewright {
namespace {

constexpr const char* kTripled = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .func (.param .b32 out) tripled(.param .b32 x)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r0, [x];
  mul.lo.u32 %r1, %r0, 3;
  st.param.b32 [out], %r1;
  ret;
}
)";

LinkInput input_of(const std::string& name, std::string_view text) {
  auto bytes = std::as_bytes(std::span(text));
  return {name, {bytes.begin(), bytes.end()}};
}

void kernel(const Tensor& out) {
  auto tripled = extern_function("tripled", u32, u32);
  out(thread_idx().x) = tripled(thread_idx().x.to(u32));
}

std::string kernel_text() {
  Traced traced =
      trace({.name = "k", .block = {32, 1, 1}}, kernel, TensorArg{u32, Shape{32}, Stride{1}, 16});
  return ptx::print(traced.module());
}

class Link : public test::TracedTest {
 protected:
  std::string error_of(const AssembleOptions& options) {
    try {
      assemble(kernel_text(), {90, 'a'}, options);
    } catch (const Error& error) {
      return error.message();
    }
    return "nothing was wrong";
  }
};

class Linked : public Link {
 protected:
  void SetUp() override {
    detail::Assembler linker = detail::probe_nvjitlink();
    if (!linker.info.usable) GTEST_SKIP() << linker.info.reason;
  }
};

TEST_F(Linked, AddsPtxOfTheUsers) {
  Assembled made =
      assemble(kernel_text(), {90, 'a'}, {.link = {input_of("tripled.ptx", kTripled)}});
  EXPECT_FALSE(made.bytes.empty());
  EXPECT_TRUE(made.assembler.starts_with("nvjitlink ")) << made.assembler;
  // nvJitLink 13.0 tells of functions, but not of entries.
  EXPECT_NE(made.log.find("tripled"), std::string::npos) << made.log;
  for (const EntryResources& entry : made.resources)
    EXPECT_EQ(entry.spill_store_bytes, 0) << made.log;
}

TEST_F(Linked, AddsAnObjectFile) {
  std::vector<std::string> programs = detail::find_programs("ptxas", "TILEWRIGHT_PTXAS");
  if (programs.empty()) GTEST_SKIP() << "no ptxas to make an object";
  detail::TemporaryDirectory directory;
  std::string text = directory.file("tripled.ptx");
  std::string object = directory.file("tripled.o");
  detail::write_file(text, std::as_bytes(std::span(std::string_view(kTripled))));
  detail::run_program(programs.front(), {"-c", "-arch=sm_90a", text, "-o", object});
  Assembled made = assemble(kernel_text(), {90, 'a'}, {.link = {LinkInput::file(object)}});
  EXPECT_FALSE(made.bytes.empty());
}

TEST_F(Linked, RunsOnAGpu) {
  if (emulated()) GTEST_SKIP() << "emulated devices run PTX";
  test::DeviceVector y = vector(u32, std::vector<std::uint32_t>(32, 0));
  Traced traced =
      trace({.name = "k", .target = device.target(), .block = {32, 1, 1}}, kernel, y.arg);
  Kernel linked = compile(device, std::move(traced), {.link = {input_of("tripled.ptx", kTripled)}});
  Parameters parameters;
  pack(parameters, y.arg, y.view);
  linked.launch({.grid = {1, 1, 1}, .block = {32, 1, 1}}, parameters, stream);
  std::vector<std::uint32_t> got = download<std::uint32_t>(y.buffer);
  for (std::uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(got[i], 3 * i);
}

TEST_F(Linked, NamesWhatIsMissing) {
  std::string none = error_of({.link = {input_of("empty.ptx",
                                                 ".version 8.0\n.target sm_90a\n"
                                                 ".address_size 64\n")}});
  EXPECT_NE(none.find("tripled"), none.npos) << none;
  EXPECT_NE(none.find("AssembleOptions::link"), none.npos) << none;
  std::string damaged = error_of({.link = {input_of("damaged.o", "not an object")}});
  EXPECT_NE(damaged.find("damaged.o"), damaged.npos) << damaged;
}

TEST_F(Link, IsPartOfTheKey) {
  AssembleOptions first{.link = {input_of("a", "one")}};
  AssembleOptions second{.link = {input_of("a", "two")}};
  EXPECT_NE(canonical_text(first), canonical_text(second));
  EXPECT_NE(canonical_text(first), canonical_text({}));
  EXPECT_FALSE(first == second);
}

TEST_F(Link, RefusesWhatItCannotDo) {
  EXPECT_THROW(LinkInput("empty.o", {}), Error);
  try {
    LinkInput::file("/nowhere/x.o");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "link: cannot read /nowhere/x.o; give the path of an object file");
  }
  AssembleOptions options{.assembler = "ptxas", .link = {input_of("tripled.ptx", kTripled)}};
  std::string refused = error_of(options);
  EXPECT_NE(refused.find("nvjitlink: links, and options.assembler asks for ptxas"), refused.npos)
      << refused;
}

TEST_F(Link, SaysWhyThereIsNoLinker) {
  ASSERT_EQ(setenv("TILEWRIGHT_NVJITLINK", "none", 1), 0);
  std::string none = error_of({.link = {input_of("tripled.ptx", kTripled)}});
  ASSERT_EQ(setenv("TILEWRIGHT_NVJITLINK", "/nowhere/libnvJitLink.so", 1), 0);
  std::string missing = error_of({.link = {input_of("tripled.ptx", kTripled)}});
  unsetenv("TILEWRIGHT_NVJITLINK");
  EXPECT_NE(none.find("nvjitlink: switched off by TILEWRIGHT_NVJITLINK"), none.npos) << none;
  EXPECT_NE(missing.find("pip install nvidia-nvjitlink"), missing.npos) << missing;
}

TEST_F(Link, IsRefusedByEmulatedDevices) {
  if (!emulated()) GTEST_SKIP() << "a GPU runs machine code";
  AssembleOptions options{.link = {input_of("tripled.ptx", kTripled)}};
  try {
    load_ptx(device, kernel_text(), "k", options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "load: " + device.id() +
                  " cannot run the machine code of tripled.ptx; give the functions as "
                  "PTX with include_ptx");
  }
}

}  // namespace
}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Tests of the assemblers that this machine has; skipped where it has none.
#include "tilewright/assembler.h"

#include <cstring>
#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

const ptx::Target kSm90a{90, 'a'};
constexpr const char* kScale = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 data, .param .u32 count) .reqntid 128, 1, 1
{
  .reg .pred %p<2>; .reg .u32 %r<5>; .reg .u64 %rd<4>; .reg .f32 %f<3>;
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  mov.u32 %r4, tile;
  mad.lo.u32 %r4, %r2, 4, %r4;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  st.shared.f32 [%r4], %f1;
  ld.shared.f32 %f1, [%r4];
  add.rn.f32 %f2, %f1, %f1;
  st.global.f32 [%rd3], %f2;
DONE:
  ret;
}
)";

class EachAssembler : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const AssemblerInfo& info : assemblers()) {
      if (info.name == GetParam() && !info.usable) GTEST_SKIP() << info.reason;
    }
    options_.assembler = GetParam();
  }
  AssembleOptions options_;
};

TEST_P(EachAssembler, MakesAnElfFileAndReportsResources) {
  Assembled made = assemble(kScale, kSm90a, options_);
  ASSERT_GT(made.bytes.size(), 4u);
  EXPECT_EQ(std::memcmp(made.bytes.data(),
                        "\x7f"
                        "ELF",
                        4),
            0);
  EXPECT_EQ(made.assembler.substr(0, std::strlen(GetParam())), GetParam());
  ASSERT_EQ(made.resources.size(), 1u);
  EXPECT_EQ(made.resources[0].entry, "scale");
  EXPECT_GT(made.resources[0].registers, 0);
  EXPECT_EQ(made.resources[0].static_smem_bytes, 512);
  EXPECT_EQ(made.resources[0].spill_store_bytes, 0);
}

TEST_P(EachAssembler, MakesTheSameBytesTwice) {
  EXPECT_EQ(assemble(kScale, kSm90a, options_).bytes, assemble(kScale, kSm90a, options_).bytes);
}

TEST_P(EachAssembler, NamesTheLineOfAnError) {
  std::string wrong = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() {\n  foo;\n}\n";
  try {
    assemble(wrong, kSm90a, options_);
    FAIL() << "assembled an unknown instruction";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("PTX line 5 \"foo;\": "), std::string::npos) << error.what();
    EXPECT_NE(error.message().find("'foo'"), std::string::npos) << error.what();
  }
}

TEST_P(EachAssembler, RefusesAKernelWhoseSetmaxnregIsIgnored) {
  std::string ignored =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      "  .reg .u64 %rd<2>; .reg .u32 %r<2>;\n  ld.param.u64 %rd1, [p];\n  mov.u32 %r1, %tid.x;\n"
      "  setmaxnreg.inc.sync.aligned.u32 240;\n  st.global.u32 [%rd1], %r1;\n  ret;\n}\n";
  try {
    assemble(ignored, kSm90a, options_);
    FAIL() << "no advisory";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("C7508"), std::string::npos) << error.what();
  }
  options_.allowed_advisories = {7508};
  EXPECT_FALSE(assemble(ignored, kSm90a, options_).bytes.empty());
}

INSTANTIATE_TEST_SUITE_P(Assemblers, EachAssembler, ::testing::Values("nvptxcompiler", "ptxas"),
                         [](const auto& row) { return std::string(row.param); });

TEST(Disassemble, GivesSassOrNamesThePackage) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  Assembled made = assemble(kScale, kSm90a);
  try {
    EXPECT_NE(disassemble(made.bytes).find("FADD"), std::string::npos);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.message(),
              "disassemble: neither nvdisasm nor cuobjdump was found; pip install "
              "nvidia-cuda-nvdisasm, or install the CUDA toolkit");
  }
}

}  // namespace
}  // namespace tilewright::test

// SPDX-License-Identifier: Apache-2.0
// Tests of choosing and running assemblers, with a program that answers like ptxas.
#include "tilewright/assembler.h"

#include "runtime/assemblers.h"
#include "runtime/fake/fake_assembler.h"
#include "runtime/fake/fake_driver.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

const ptx::Target kSm90a{90, 'a'};
const std::string kPtx = ".version 8.0\n.target sm_90a\n.entry k() { foo; }\n";

class Assembling : public FakeDriver {
 protected:
  FakeAssembler fake_;
};

TEST_F(Assembling, KeepsMachineCodeNameAndResources) {
  fake_.answer(
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 2 barriers, 8 bytes cumulative stack size, 1024 "
      "bytes smem, 24 bytes cmem[0]\n");
  Assembled made = assemble(kPtx, kSm90a);
  EXPECT_EQ(made.bytes.size(), 4u);
  EXPECT_EQ(made.assembler, "ptxas 13.0.88");
  EntryResources expected{.entry = "k",
                          .registers = 40,
                          .stack_bytes = 8,
                          .spill_store_bytes = 12,
                          .spill_load_bytes = 16,
                          .static_smem_bytes = 1024,
                          .constant_bytes = 24,
                          .barriers = 2};
  ASSERT_EQ(made.resources.size(), 1u);
  EXPECT_EQ(made.resources[0], expected);
}

TEST_F(Assembling, NamesLineTextAndReasonOfAnError) {
  fake_.fail(
      "ptxas k.ptx, line 3; error   : Not a name of any known instruction: 'foo'\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n");
  EXPECT_EQ(error_of([] { assemble(kPtx, kSm90a); }),
            "assemble: ptxas 13.0.88: PTX line 3 \".entry k() { foo; }\": Not a name of any known "
            "instruction: 'foo'");
}

TEST_F(Assembling, RefusesAdvisoriesUnlessTheirNumberIsAllowed) {
  fake_.answer("ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored.\n");
  EXPECT_EQ(error_of([] { assemble(kPtx, kSm90a, {.allowed_advisories = {7510}}); }),
            "assemble: the assembler gave up on what was asked: C7508: Potential Performance Loss: "
            "'setmaxnreg' ignored.; change the kernel, or allow the number in AssembleOptions");
  EXPECT_EQ(assemble(kPtx, kSm90a, {.allowed_advisories = {7508}}).bytes.size(), 4u);
}

TEST_F(Assembling, SkipsAnAssemblerThatIsTooOldForThePtx) {
  EXPECT_EQ(error_of([] { assemble(".version 9.4\n", kSm90a); }),
            "assemble: no assembler can be used (nvptxcompiler: switched off by "
            "TILEWRIGHT_NVPTXCOMPILER; ptxas: 13.0.88 reads PTX up to 9.0, this is 9.4); pip "
            "install nvidia-cuda-nvcc, or run the kernel on an emulated device");
}

TEST_F(Assembling, SkipsAnAssemblerThatIsNewerThanTheDriver) {
  EXPECT_EQ(error_of([] { assemble(kPtx, kSm90a, {}, 12080); }),
            "assemble: no assembler can be used (nvptxcompiler: switched off by "
            "TILEWRIGHT_NVPTXCOMPILER; ptxas: 13.0.88 is newer than the driver, which is for CUDA "
            "12.8); pip install nvidia-cuda-nvcc, or run the kernel on an emulated device");
}

TEST_F(Assembling, SaysWhyAProgramIsNoAssembler) {
  setenv("TILEWRIGHT_PTXAS", "/bin/true", 1);
  std::vector<AssemblerInfo> found = assemblers();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(found[1].usable);
  EXPECT_EQ(found[1].reason, "/bin/true --version does not say a CUDA version");
  EXPECT_FALSE(have_assembler());
}

TEST_F(Assembling, ListsTheDriverAsTheLastResort) {
  AssemblerInfo driver = assemblers().back();
  EXPECT_EQ(driver.name, "driver");
  EXPECT_TRUE(driver.usable);
  EXPECT_EQ(driver.version, "13.0");
  EXPECT_EQ(to_string(driver.newest_ptx), "9.0");
}

TEST_F(Assembling, RefusesTextWithoutAVersion) {
  EXPECT_EQ(error_of([] { assemble("int main() {}", kSm90a); }),
            "assemble: the text has no line '.version X.Y'; is it PTX?");
  EXPECT_EQ(error_of([] { assemble("// .version 8.0\n", kSm90a); }),
            "assemble: the text has no line '.version X.Y'; is it PTX?");
}

TEST(NewestPtx, FollowsTheReleaseNotes) {
  struct Row {
    int cuda;
    ptx::Version ptx;
  };
  for (const Row& row : {Row{11080, {7, 8}}, Row{12000, {8, 0}}, Row{12050, {8, 5}},
                         Row{12060, {8, 5}}, Row{12080, {8, 7}}, Row{13000, {9, 0}}}) {
    EXPECT_EQ(detail::newest_ptx(row.cuda), row.ptx) << row.cuda;
  }
}

TEST(AssembleOptions, TheirCanonicalTextNamesEachDifference) {
  EXPECT_EQ(canonical_text(AssembleOptions{}), "O3");
  EXPECT_EQ(
      canonical_text(
          {.opt_level = 1, .line_info = true, .allowed_advisories = {7510}, .assembler = "ptxas"}),
      "O1 lineinfo C7510 ptxas");
}

}  // namespace
}  // namespace tilewright::test

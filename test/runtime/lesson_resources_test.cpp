// SPDX-License-Identifier: Apache-2.0
// What the assembler makes of the GEMMs of lessons 9 and 11: a slower kernel fails without a GPU.
#include "examples/mma_gemm.h"
#include "examples/mma_tma_gemm.h"
#include "examples/wgmma_gemm.h"
#include "tilewright/assembler.h"
#include "tilewright/module.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

/// Advisories (wgmma serialised, setmaxnreg ignored) are errors of assemble().
EntryResources resources_of(const Traced& traced) {
  Assembled made = assemble(ptx::print(traced.module()), {90, 'a'});
  EXPECT_EQ(made.resources.size(), 1u);
  return made.resources.empty() ? EntryResources{} : made.resources[0];
}

TEST(LessonResources, NothingSpills) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  // 384 threads begin with 168 registers each; roles() moves them between warpgroups.
  EntryResources wgmma = resources_of(lesson::WgmmaGemm{}.trace({90, 'a'}));
  EXPECT_EQ(wgmma.registers, 168);
  const std::int64_t shape[] = {8192, 8192};
  View matrix = make_view(1 << 20, bf16, shape);
  EntryResources mma = resources_of(lesson::MmaGemm{}.trace({90, 'a'}, matrix, matrix, matrix));
  EntryResources fed = resources_of(lesson::MmaTmaGemm{}.trace({90, 'a'}, matrix));
  EXPECT_EQ(fed.registers, 168);
  for (const EntryResources& r : {wgmma, mma, fed})
    EXPECT_EQ(r.spill_store_bytes + r.spill_load_bytes + r.stack_bytes, 0) << r.entry;
}

}  // namespace
}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// The corpus of compiled kernels: each case gives the expected bytes and no finding.
#include "tilewright/emulator.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace tilewright::emu {
namespace {

const std::string kCorpus = std::string(TILEWRIGHT_SOURCE_DIR) + "/test/data/ptx_corpus/";

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct CorpusRow {
  std::string name, file, ptx;
};
std::ostream& operator<<(std::ostream& out, const CorpusRow& row) { return out << row.name; }

class Corpus : public testing::TestWithParam<CorpusRow> {};

void run_clean(const CorpusRow& row, const Options& options) {
  const std::string ptx = kCorpus + row.ptx;
  const CaseResult result = run_case(kCorpus + row.file, read_text(ptx), ptx, options);
  const std::string what = row.name + " seed " + std::to_string(options.seed) + " residency " +
                           std::string(name(options.residency)) + " delivery " +
                           std::string(name(options.delivery)) + " divergence " +
                           std::string(name(options.divergence));
  for (const Diagnostic& d : result.report.findings)
    ADD_FAILURE() << what << ": " << to_string(d);
  for (const CaseBuffer& b : result.buffers) {
    EXPECT_EQ(b.mismatches, 0U) << what << " argument " << b.arg << ": " << b.first_difference;
  }
  EXPECT_TRUE(result.report.completed) << what;
}

TEST_P(Corpus, GivesTheExpectedOutputWithoutAFinding) { run_clean(GetParam(), {}); }

/// $TILEWRIGHT_EMU_SEEDS (1): how often each mode runs, each time with a new seed.
std::uint64_t rounds() {
  const char* text = std::getenv("TILEWRIGHT_EMU_SEEDS");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

void run_every_mode(const CorpusRow& row, std::uint64_t& seed) {
  for (const Residency r : {Residency::all, Residency::estimate, Residency::one}) {
    for (const Delivery d : {Delivery::late, Delivery::eager, Delivery::random}) {
      for (const Divergence v : {Divergence::converge, Divergence::maximal, Divergence::random}) {
        Options o;
        o.seed = seed++;
        o.residency = r;
        o.delivery = d;
        o.divergence = v;
        run_clean(row, o);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST_P(Corpus, IsCleanInEveryScheduleMode) {
  std::uint64_t seed = 1;
  for (std::uint64_t i = 0; i < rounds() && !HasFailure(); ++i)
    run_every_mode(GetParam(), seed);
}

std::vector<CorpusRow> rows() {
  std::vector<CorpusRow> out;
  auto add = [&](const std::string& folder, const std::string& entry, bool sm80) {
    for (const std::string target : {"sm_80", "sm_90a"}) {
      if (target == "sm_80" && !sm80) continue;
      out.push_back(
          {entry + "_" + target, folder + "/" + entry + ".case", folder + "/" + target + ".ptx"});
    }
  };
  add("k00_empty", "empty", true);
  add("k01_reduce_shfl", "reduce_shfl", true);
  add("k02_gemm_tiled", "gemm_tiled", true);
  add("k04_softmax", "softmax_rows", true);
  add("k11_switch", "vm_switch", true);
  add("k06_cp_async_pipeline", "pipe2", true);
  add("k06_cp_async_pipeline", "pipe3_prim", true);
  add("k07_cvt_lowp", "cvt_lowp", true);
  add("k07_cvt_lowp", "bf162_axpy", true);
  add("k07_cvt_lowp", "half2_gelu_ish", true);
  add("k09_cub_scan", "block_exscan", true);
  add("k13_printf", "hello", true);
  add("k16_tma_bulk", "bulk_copy", false);
  add("k18_wgmma", "wgmma_f16", false);
  add("k20_mma_ldmatrix", "mma_bf16", true);
  add("k20_mma_ldmatrix", "mma_s8", true);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Corpus, testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace tilewright::emu

// SPDX-License-Identifier: Apache-2.0
// Deletes each barrier, fence and wait of the corpus kernels, one at a time: nearly all must be
// seen.
#include "emu/mutants.h"
#include "tilewright/emulator.h"
#include "tilewright/error.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <iterator>
#include <map>
#include <set>

namespace tilewright::emu {
namespace {

using test::Mutant;
using test::mutants;

const std::string kCorpus = std::string(TILEWRIGHT_SOURCE_DIR) + "/test/data/ptx_corpus/";

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Lines that the case executes: the others cannot be judged by it.
std::set<std::uint32_t> executed_lines(const std::string& case_path, const std::string& text) {
  Options o;
  o.counters = Counting::on;
  std::set<std::uint32_t> lines;
  const CaseResult result = run_case(case_path, text, "original", o);
  EXPECT_TRUE(result.report.ok()) << case_path;
  for (const InstrCount& c : result.report.counters.instructions)
    lines.insert(c.ptx_line);
  return lines;
}

/// Does any of a few schedules report something above advice, or not reach its end?
bool is_reported(const std::string& case_path, const std::string& text) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Options o;
    o.seed = seed;
    o.delivery = static_cast<Delivery>(seed % 3);
    o.divergence = static_cast<Divergence>(seed / 2 % 3);
    o.limits.idle_steps = 1 << 16;
    try {
      if (!run_case(case_path, text, "mutant", o).report.ok()) return true;
    } catch (const Error&) {
      return true;
    }
  }
  return false;
}

struct MutationRow {
  std::string folder, entry;
  bool sm80;
  std::string other_case = {};  ///< a launch that reaches more, besides the entry's own
};
const std::vector<MutationRow> kRows = {
    {"k01_reduce_shfl", "reduce_shfl", true},
    {"k02_gemm_tiled", "gemm_tiled", true},
    {"k04_softmax", "softmax_rows", true},
    {"k06_cp_async_pipeline", "pipe2", true},
    {"k06_cp_async_pipeline", "pipe3_prim", true, "pipe3_prim_long"},
    {"k09_cub_scan", "block_exscan", true},
    {"k16_tma_bulk", "bulk_copy", false},
    {"k18_wgmma", "wgmma_f16", false},
    {"k20_mma_ldmatrix", "mma_bf16", true},
};

/// The part of a file that belongs to the entry: the other entries' barriers do not matter.
std::string only_entry(const std::string& text, const std::string& entry) {
  std::string out = text;
  std::size_t at = 0;
  while ((at = out.find(".entry ", at)) != std::string::npos) {
    const std::size_t begin = at + 7;
    const std::size_t name_end = out.find_first_of("( \t\n", begin);
    const std::size_t next = out.find(".visible .entry", begin);
    if (out.substr(begin, name_end - begin) == entry) {
      at = begin;
      continue;
    }
    const std::size_t start = out.rfind(".visible", at);
    out.erase(start, (next == std::string::npos ? out.size() : next) - start);
    at = start;
  }
  return out;
}

/// Deletions that change nothing that these inputs can show, and why.
struct Equivalent {
  std::string what, reason;
};
const std::string kNoSharedAccess =
    "behind it, each thread reads its own registers and global memory that nobody writes, until it "
    "exits: no access of shared memory is left to order";
const std::string kNoRefill =
    "in the loop over the last batches, at most three, each stage has been filled for the last "
    "time: all that follows a thread's read of a stage is reads of other stages";
const std::string kOwnBlock =
    "fence.mbarrier_init only releases initialisations to the cluster, which is the block, whose "
    "bar.sync orders them for all its threads; it is no proxy fence, so that for copies, which a "
    "thread behind the bar.sync begins, it means nothing either";
const std::vector<Equivalent> kEquivalent = {
    {"softmax_rows sm_80 line 333", kNoSharedAccess},
    {"softmax_rows sm_90a line 333", kNoSharedAccess},
    {"pipe3_prim sm_80 line 347", kNoRefill},
    {"pipe3_prim sm_90a line 347", kNoRefill},
    {"bulk_copy sm_90a line 48", kOwnBlock},
};

/// Tries each deletion in the launches of a row until one reports it: by its name.
std::map<std::string, bool> try_row(const MutationRow& row, const std::string& target) {
  const std::string folder = kCorpus + row.folder + "/";
  const std::string text = only_entry(read_text(folder + target + ".ptx"), row.entry);
  std::map<std::string, bool> tried;
  for (const std::string& launch : {row.entry, row.other_case}) {
    if (launch.empty()) continue;
    const std::string case_path = folder + launch + ".case";
    const std::set<std::uint32_t> executed = executed_lines(case_path, text);
    for (const Mutant& m : mutants(text)) {
      if (!executed.contains(m.line)) continue;
      bool& seen = tried[row.entry + " " + target + " " + m.what];
      seen = seen || is_reported(case_path, m.text);
    }
  }
  return tried;
}

bool is_equivalent(std::string_view what) {
  return std::any_of(kEquivalent.begin(), kEquivalent.end(),
                     [&](const Equivalent& e) { return what.starts_with(e.what + ":"); });
}

TEST(Mutation, DeletedSynchronisationIsReported) {
  std::size_t all = 0, survivors = 0;
  for (const MutationRow& row : kRows) {
    for (const std::string target : {"sm_80", "sm_90a"}) {
      if (target == "sm_80" && !row.sm80) continue;
      for (const auto& [what, seen] : try_row(row, target)) {
        ++all;
        survivors += seen ? 0 : 1;
        EXPECT_NE(seen, is_equivalent(what)) << what;
      }
    }
  }
  std::cout << "deletions " << all << ", survivors " << survivors << "\n";
  EXPECT_EQ(survivors, kEquivalent.size()) << all;
}

}  // namespace
}  // namespace tilewright::emu

// SPDX-License-Identifier: Apache-2.0
// The instruction table against ptxas: each row's samples are taken where the row says, and only
// there.
#include "ptx/ptxas.h"
#include "ptx/row_samples.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace tilewright::ptx::test {
namespace {

constexpr Version kPtxasVersion{9, 0};  // the newest that the samples' expectations were taken from

struct Batch {
  std::string text;
  std::vector<const Instr*> instructions;
  SampleModule module;
};

/// The samples of one home as a module. Its last statement is wrong on purpose, so that ptxas
/// checks every instruction but generates no code, which would take minutes.
Batch batch(const Home& home, const std::vector<std::pair<Opcode, SampleModule::Optional>>& list,
            Target target, Version version) {
  Batch out{"", {}, SampleModule(home.target, home.version)};
  std::vector<Stmt>& body = out.module.function().body;
  for (const auto& [op, optional] : list)
    body.emplace_back(out.module.make(op, optional));
  body.emplace_back(Label{0});
  body.emplace_back(Directive{"mov.u64 %b64_0, %tid.x"});
  out.module.module.target = target;
  out.module.module.version = version;
  out.text = print(out.module.module);
  for (const Stmt& stmt : body)
    if (const auto* instr = std::get_if<Instr>(&stmt)) out.instructions.push_back(instr);
  return out;
}

TEST(Table, EverySampleFitsItsOwnRow) {
  for (const auto& [home, list] : samples()) {
    SampleModule m(home.target, home.version);
    for (const auto& [op, optional] : list) {
      const Instr instr = m.make(op, optional);
      EXPECT_NO_THROW(check_instruction(m.module, m.function(), instr)) << to_string(op);
    }
  }
}

TEST(Table, EveryOpcodeParsesBackToItself) {
  for (std::uint16_t form = 0; form < forms().size(); ++form)
    for (const Opcode& op : variants(form, 2))
      EXPECT_EQ(parse_opcode(to_string(op)), op) << to_string(op);
}

TEST(Table, PtxasAcceptsEverySampleWhereTheRowSays) {
  if (!has_ptxas()) GTEST_SKIP() << "no ptxas";
  for (const auto& [home, list] : samples(2)) {
    if (home.version > kPtxasVersion) continue;
    const Batch b = batch(home, list, home.target, home.version);
    const Assembled result = assemble(b.text, to_string(home.target));
    ASSERT_FALSE(result.errors.empty()) << result.output;
    for (const Instr* instr : b.instructions)
      EXPECT_FALSE(result.errors.contains(instr->line))
          << to_string(home.target) << " " << to_string(home.version) << " " << to_string(instr->op)
          << ": " << result.errors.at(instr->line);
  }
}

/// What ptxas 13.0 takes although the manual does not let it.
bool is_lenient(const Instr& instr) {
  // cp.async writes .shared::cta before ISA 7.8 has the word.
  return instr.op.row().effect == Effect::cp_async && instr.op.has("shared::cta");
}

Version before(Version version) {
  if (version.minor > 0) return {version.major, version.minor - 1};
  return version.major == 9 ? Version{8, 8} : version.major == 8 ? Version{7, 8} : Version{6, 5};
}

TEST(Table, PtxasRejectsEverySampleOneVersionBelow) {
  if (!has_ptxas()) GTEST_SKIP() << "no ptxas";
  for (const auto& [home, list] : samples()) {
    const Version below = before(home.version);
    // Nothing to see where it is the target that needs the version.
    if (home.version > kPtxasVersion || below < required_version(home.target)) continue;
    const Batch b = batch(home, list, home.target, below);
    const Assembled result = assemble(b.text, to_string(home.target));
    for (const Instr* instr : b.instructions)
      EXPECT_TRUE(result.errors.contains(instr->line) || is_lenient(*instr))
          << to_string(instr->op) << " of PTX " << to_string(home.version) << " is taken in "
          << to_string(below) << " on " << to_string(home.target);
  }
}

TEST(Table, PtxasRejectsEverySampleOnTheTargetBefore) {
  if (!has_ptxas()) GTEST_SKIP() << "no ptxas";
  const std::map<std::string, std::string> before = {
      {"sm_80", "sm_75"},     {"sm_86", "sm_80"},     {"sm_89", "sm_86"},
      {"sm_90", "sm_89"},     {"sm_90a", "sm_90"},    {"sm_100", "sm_90a"},
      {"sm_100f", "sm_100"},  {"sm_100a", "sm_100f"}, {"sm_103a", "sm_103f"},
      {"sm_110a", "sm_110f"}, {"sm_120f", "sm_120"},  {"sm_120a", "sm_120f"}};
  for (const auto& [home, list] : samples()) {
    const auto it = before.find(to_string(home.target));
    if (it == before.end() || home.version > kPtxasVersion) continue;
    const Batch b = batch(home, list, parse_target(it->second), kPtxasVersion);
    const Assembled result = assemble(b.text, it->second);
    for (const Instr* instr : b.instructions)
      EXPECT_TRUE(result.errors.contains(instr->line))
          << to_string(instr->op) << " of " << it->first << " is taken on " << it->second;
  }
}

}  // namespace
}  // namespace tilewright::ptx::test

// SPDX-License-Identifier: Apache-2.0
// Opcodes from text: what they hold, and what is said about one that does not exist.
#include "tilewright/error.h"
#include "tilewright/form.h"

#include <gtest/gtest.h>
#include <thread>

namespace tilewright::ptx {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_opcode(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::user);
    return error.message();
  }
  return "";
}

TEST(Opcode, HoldsItsWordsAndTypes) {
  const Opcode& op = opcode("cvt.rn.satfinite.e4m3x2.f32");
  EXPECT_EQ(op.row().opcode, "cvt");
  EXPECT_TRUE(op.has("satfinite"));
  EXPECT_TRUE(op.has(mod("rn")));
  EXPECT_FALSE(op.has("relu"));
  EXPECT_EQ(op.type(0), Type::e4m3x2);
  EXPECT_EQ(op.type(1), Type::f32);
  EXPECT_EQ(op.type(2), Type::none);
  EXPECT_EQ(to_string(op), "cvt.rn.satfinite.e4m3x2.f32");
}

TEST(Opcode, IsTheSameObjectEachTime) {
  const Opcode* first = &opcode("fma.rn.f32");
  EXPECT_EQ(first, &opcode(std::string("fma.rn") + ".f32"));
  const Opcode* elsewhere = nullptr;
  std::thread([&] { elsewhere = &opcode("fma.rn.f32"); }).join();
  EXPECT_EQ(first, elsewhere);
}

TEST(Opcode, TakesModifiersInAnyOrderAndPrintsThemInTheTables) {
  EXPECT_EQ(to_string(parse_opcode("atom.add.acquire.cta.u32")), "atom.acquire.cta.add.u32");
  EXPECT_EQ(to_string(parse_opcode("add.sat.f32.rn")), "add.rn.sat.f32");
}

TEST(Opcode, KeepsTheOrderOfTypes) {
  EXPECT_EQ(parse_opcode("cvt.f32.f16").type(), Type::f32);
  EXPECT_NE(error_of("cvt.f16.f32"), "");  // needs a rounding, and is not cvt.f32.f16
  EXPECT_EQ(to_string(parse_opcode("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32")),
            "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32");
}

TEST(Opcode, SaysWhatIsWrong) {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {
      {"foo.bar", "unknown instruction 'foo'"},
      {"fmaa.rn.f32", "unknown instruction 'fmaa'; did you mean 'fma', 'mad', 'mapa'"},
      {"add.bogus.f32", "no form of 'add' has the modifier '.bogus'"},
      {"add.rn.s32",
       "no form of 'add' has the modifiers '.rn.s32' in this combination; nearest: "
       "add.sat?.s32, add.cc.{u32,s32}"},
      {"ld.shared.L1::evict_last.u32",
       "'.L1::evict_last' and '.shared' do not go together in 'ld'"},
      {"add..s32", "'add..s32' has an empty modifier or too many"},
      {"add.", "'add.' has an empty modifier or too many"},
      {"mov",
       "'mov' needs modifiers; nearest: mov.pred, "
       "mov.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(error_of(row.text), row.message) << row.text;
}

TEST(Opcode, NoRowLacksAnEffectOrAPattern) {
  for (const Form& form : forms()) {
    EXPECT_FALSE(form.opcode.empty());
    EXPECT_FALSE(form.requires_[0].targets.empty()) << form.opcode << form.modifiers;
    EXPECT_LE(form.effect, Effect::none);
    // Lane-pure forms compute a result from registers: no address, and a destination first.
    if (form.effect == Effect::lane) {
      EXPECT_TRUE(form.operands.front() == 'd' || form.operands.front() == 'p')
          << form.opcode << form.modifiers << " " << form.operands;
    }
  }
}

TEST(Mod, UnknownWordsAreZero) {
  EXPECT_EQ(mod("nonsense").id, 0);
  EXPECT_EQ(name(mod("shared::cta")), "shared::cta");
  EXPECT_EQ(type_of(mod("bf16x2")), Type::bf16x2);
  EXPECT_EQ(type_of(mod("rn")), Type::none);
}

}  // namespace
}  // namespace tilewright::ptx

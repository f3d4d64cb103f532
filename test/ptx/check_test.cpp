// SPDX-License-Identifier: Apache-2.0
// Operands against their row, and instructions against target and version.
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <gtest/gtest.h>

namespace tilewright::ptx {
namespace {

std::string check(const std::string& statement) {
  Module m = parse(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\nx:\n" +
      statement + "\n}\n");
  const Function& f = m.functions.front();
  try {
    for (const Stmt& stmt : f.body)
      if (const auto* instr = std::get_if<Instr>(&stmt)) check_instruction(m, f, *instr, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::user);
    return error.message();
  }
  return "";
}

TEST(CheckInstruction, TakesWhatPtxasTakes) {
  for (const char* statement :
       {"add.f32 %f1, %r1, %f2;", "add.f32 %f1, 1.5, %f2;", "mov.b32 %f1, 0f3F800000;",
        "setp.eq.s32 %p1|_, %r1, -1;", "setp.lt.and.s32 %p1, %r1, %r2, !%p2;",
        "ld.global.u8 %r1, [%rd1];", "ld.global.b32 {%r1}, [%rd1];", "ld.global.b32 %rd2, [%rd1];",
        "st.global.v2.b32 [%rd1], {%r1, 7};", "shfl.sync.idx.b32 %f1|%p1, %f2, 1, 31, -1;",
        "mov.b64 {%r1, _}, %rd2;", "mov.u64 %rd1, p;", "bar.sync 1, 64;", "@!%p1 bra x;",
        "mov.u32 %r1, %laneid;", "bar.red.or.pred %p1, 0, !%p2;",
        "cp.async.ca.shared.global [%r1], [%rd1], 16, %p1;", "selp.f32 %f1, %f2, 0f00000000, %p1;"})
    EXPECT_EQ(check(statement), "") << statement;
}

TEST(CheckInstruction, SaysWhichOperandIsWrongAndHow) {
  struct Row {
    const char* statement;
    const char* message;
  };
  const Row rows[] = {
      {"add.s32 %f1, %r1, %r2;",
       "add.s32: operand 1 is register %f1 of type f32; it must be of type s32"},
      {"add.s32 %r1, %r2;", "add.s32: takes 3 operands (d, a, b), not 2"},
      {"add.s32 %r1, %r2, %r3, %r4;", "add.s32: takes 3 operands (d, a, b), not 4"},
      {"add.s32 %r1, %r2, 1.5;",
       "add.s32: operand 3 is a floating-point immediate; it must be of type s32"},
      {"add.s32 5, %r1, %r2;",
       "add.s32: operand 1 is the immediate 5; it must be a register of type s32"},
      {"add.s32 %r1, %r2, 5000000000;",
       "add.s32: operand 3 is the immediate 5000000000; it must be of type s32"},
      {"add.u32 %r1, %tid.x, 1;",
       "add.u32: operand 2 is %tid.x; it must be a register; move it to one first"},
      {"add.s32 %r1, !%r2, 1;",
       "add.s32: operand 2 is register %r2 of type b32; it must be without '!'"},
      {"ld.global.v2.u32 %r1, [%rd1];",
       "ld.global.v2.u32: operand 1 is register %r1 of type b32; it must be a vector of 2"},
      {"ld.global.u32 %r1, %rd1;",
       "ld.global.u32: operand 2 is register %rd1 of type b64; it must be an address in brackets"},
      {"ld.global.u32 %r1, [%f1];",
       "ld.global.u32: address register %f1 has type f32; it must be a 32- or 64-bit integer"},
      {"ld.global.L2::cache_hint.u32 %r1, [%rd1];",
       "ld.global.L2::cache_hint.u32: takes 3 operands (d{v}~, [a], h:b64?L2::cache_hint), not 2"},
      {"cp.async.ca.shared.global [%r1], [%rd2], 5;",
       "cp.async.ca.shared.global: operand 3 is the immediate 5; it must be one of 4, 8, 16"},
      {"setmaxnreg.inc.sync.aligned.u32 25;",
       "setmaxnreg.inc.sync.aligned.u32: operand 1 is the immediate 25; it must be from 24 to 256 "
       "in steps of 8"},
      {"bar.sync 16;", "bar.sync: operand 1 is the immediate 16; it must be from 0 to 15"},
      {"mul.wide.s32 %r1, %r2, %r3;",
       "mul.wide.s32: operand 1 is register %r1 of type b32; it must be of type s64"},
      {"elect.sync %r1, -1;",
       "elect.sync: operand 1 is register %r1 of type b32; it must be a pair such as %r1|%p1"},
      {"mov.b64 %rd1, {%r1, %r2, %r3};",
       "mov.b64: operand 2 is a vector of 3; it must be a vector of 2 or 4 that fills a bit type"},
      {"shl.b32 %r1, %r1, %rd1;",
       "shl.b32: operand 3 is register %rd1 of type b64; it must be of type u32"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(check(row.statement), row.message) << row.statement;
}

Module with(std::string_view op, std::string_view target, Version version) {
  Module m;
  m.target = parse_target(target);
  m.version = version;
  m.files.emplace_back("kernel.cpp");
  m.sites.push_back({1, 41, 3, 0});
  Instr instr;
  instr.op = opcode(op);
  instr.site = 1;
  m.functions.emplace_back().body.emplace_back(instr);
  return m;
}

TEST(Capabilities, NameWhatIsNeededAndTheUsersLine) {
  struct Row {
    const char* op;
    const char* target;
    Version version;
    const char* what;
  };
  const Row rows[] = {
      {"wgmma.fence.sync.aligned",
       "sm_90",
       {},
       "kernel.cpp:41: error: wgmma.fence.sync.aligned needs one of 90a (PTX 8.0); the module's "
       "target is sm_90"},
      {"cp.async.wait_all",
       "sm_75",
       {},
       "kernel.cpp:41: error: cp.async.wait_all needs sm_80 or newer (PTX 7.0); the module's "
       "target is sm_75"},
      {"elect.sync",
       "sm_90",
       {7, 8},
       "kernel.cpp:41: error: elect.sync needs PTX 8.0 on sm_90; the module's version is 7.8"},
      {"cvt.rn.f16x2.e4m3x2",
       "sm_80",
       {},
       "kernel.cpp:41: error: cvt.rn.f16x2.e4m3x2 needs sm_89 or newer (PTX 8.1) or sm_90 or newer "
       "(PTX 7.8); the "
       "module's target is sm_80"},
      {"fence.acq_rel.cluster",
       "sm_80",
       {},
       "kernel.cpp:41: error: '.cluster' of fence.acq_rel.cluster needs sm_90 or newer (PTX 7.8); "
       "the module's "
       "target is sm_80"},
      {"tcgen05.wait::ld.sync.aligned",
       "sm_120a",
       {},
       "kernel.cpp:41: error: tcgen05.wait::ld.sync.aligned needs one of 100f,110f (PTX 8.6); the "
       "module's target "
       "is sm_120a"},
      {"add.s32",
       "sm_80",
       {6, 5},
       "error: target sm_80 needs PTX 7.0 on sm_80; the module's version is 6.5"},
  };
  for (const Row& row : rows) {
    try {
      check_capabilities(with(row.op, row.target, row.version));
      ADD_FAILURE() << row.op << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_STREQ(error.what(), row.what);
    }
  }
}

TEST(Capabilities, AFamilysMembersHaveItsFeatures) {
  EXPECT_TRUE(satisfies(parse_target("sm_103a"), "100f"));
  EXPECT_TRUE(satisfies(parse_target("sm_100f"), "100f"));
  EXPECT_FALSE(satisfies(parse_target("sm_100"), "100f"));
  EXPECT_FALSE(satisfies(parse_target("sm_120a"), "100f,110f"));
  EXPECT_TRUE(satisfies(parse_target("sm_120"), "sm_100+"));
  EXPECT_FALSE(satisfies(parse_target("sm_90"), "90a"));
}

TEST(RequiredVersion, IsTheLowestThatSuffices) {
  EXPECT_EQ(required_version(with("add.s32", "sm_80", {})), (Version{7, 0}));
  EXPECT_EQ(required_version(with("bmsk.clamp.b32", "sm_80", {})), (Version{7, 6}));
  EXPECT_EQ(required_version(with("cvt.rn.f16x2.e4m3x2", "sm_89", {})), (Version{8, 1}));
  EXPECT_EQ(required_version(with("cvt.rn.f16x2.e4m3x2", "sm_90", {})), (Version{7, 8}));
  EXPECT_EQ(required_version(with("wgmma.fence.sync.aligned", "sm_90a", {})), (Version{8, 0}));
  EXPECT_EQ(required_version(with("ld.global.L2::cache_hint.u32", "sm_80", {})), (Version{7, 4}));
}

TEST(Target, UnknownNamesListTheKnownOnes) {
  try {
    parse_target("sm_91");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(
        error.message(),
        "unknown target 'sm_91'; known: sm_50, sm_52, sm_53, sm_60, sm_61, sm_62, sm_70, sm_72, "
        "sm_75, sm_80, "
        "sm_86, sm_87, sm_88, sm_89, sm_90[a], sm_100[a|f], sm_101[a|f], sm_103[a|f], sm_110[a|f], "
        "sm_120[a|f], sm_121[a|f]");
  }
}

}  // namespace
}  // namespace tilewright::ptx

// SPDX-License-Identifier: Apache-2.0
// What the parser makes of each construct, and how it refuses the rest.
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace tilewright::ptx {
namespace {

const std::string kHead = ".version 8.0\n.target sm_90\n.address_size 64\n";

std::string kernel(const std::string& body) {
  return kHead +
         ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 "
         "%rd<9>;\n" +
         body + "\n}\n";
}

Function parse_kernel(const std::string& body) { return parse(kernel(body)).functions.front(); }

const Instr& instr(const Function& f, std::size_t index) {
  std::vector<const Instr*> all;
  for (const Stmt& stmt : f.body)
    if (const auto* i = std::get_if<Instr>(&stmt)) all.push_back(i);
  return *all.at(index);
}

TEST(Parse, KeepsTheLineOfEachStatement) {
  const Function f =
      parse_kernel("mov.u32 %r1, 1;\n/* two\nlines */ mov.u32 %r2,\n 2; // end\nret;");
  EXPECT_EQ(instr(f, 0).line, 7U);
  EXPECT_EQ(instr(f, 1).line, 9U);
  EXPECT_EQ(instr(f, 2).line, 11U);
}

TEST(Parse, ReadsNumbersInEverySpelling) {
  const Function f = parse_kernel(
      "mov.u32 %r1, 0x1F; mov.u32 %r1, 017; mov.u32 %r1, 0b101; mov.u32 %r1, 42U; mov.u32 %r1, -7;"
      "mov.b32 %r1, 0f3F800000; mov.b64 %rd1, 0d3FF0000000000000; mov.b64 %rd1, 1.5e1;"
      "mov.u64 %rd1, 18446744073709551615; mov.u32 %r1, (3 + 4) * 2 << 1;");
  const std::int64_t expected[] = {
      31, 15, 5, 42, -7, 0x3F800000, 0x3FF0000000000000, 0x402E000000000000, -1, 28};
  for (std::size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(instr(f, i).operands[1].value, expected[i]) << i;
  EXPECT_EQ(instr(f, 3).operands[1].type, Type::u64);
  EXPECT_EQ(instr(f, 5).operands[1].type, Type::f32);
  EXPECT_EQ(instr(f, 7).operands[1].type, Type::f64);
}

TEST(Parse, ReadsEveryKindOfOperand) {
  const Function f = parse_kernel(
      ".shared .align 16 .b8 sm[64];\n@!%p1 setp.eq.s32 %p1|%p2, %r1, %r2;\n"
      "ld.global.v2.b32 {%r1, %r2}, [%rd1+-8];\nmov.u64 %rd2, sm+16;\nmov.u32 %r1, %tid.y;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%rd1, "
      "{%r1, %r2}], [sm+32];");
  EXPECT_EQ(f.registers[instr(f, 0).guard->reg].name, "%p1");
  EXPECT_TRUE(instr(f, 0).guard->negated);
  EXPECT_EQ(instr(f, 0).operands[0].kind, Operand::Kind::pair);
  EXPECT_EQ(instr(f, 1).operands[0].elems.size(), 2U);
  EXPECT_EQ(instr(f, 1).operands[1].value, -8);
  EXPECT_EQ(instr(f, 2).operands[1].kind, Operand::Kind::symbol);
  EXPECT_EQ(instr(f, 2).operands[1].value, 16);
  EXPECT_EQ(special_registers()[instr(f, 3).operands[1].id].name, "%tid");
  EXPECT_EQ(instr(f, 3).operands[1].component, 1);
  EXPECT_EQ(instr(f, 4).operands[1].elems.size(), 2U);  // the coordinates
}

TEST(Parse, RenamesWhatAnInnerScopeShadows) {
  const Function f = parse_kernel(
      "mov.u32 %r1, 1;\n{ .reg .b32 %r<4>; mov.u32 %r1, 2; L: bra L; }\n{ L: bra L; bra out; "
      "}\nmov.u32 %r1, 3;\nout: ret;");
  EXPECT_EQ(f.registers[instr(f, 0).operands[0].id].name, "%r1");
  EXPECT_EQ(f.registers[instr(f, 1).operands[0].id].name, "%r1_1");
  EXPECT_EQ(instr(f, 0).operands[0].id, instr(f, 5).operands[0].id);
  EXPECT_NE(instr(f, 2).operands[0].id, instr(f, 3).operands[0].id);  // two labels L
  EXPECT_EQ(f.labels, (std::vector<std::string>{"L", "L_1", "out"}));
}

TEST(Parse, ManyDeclaredRegistersCostNothing) {
  const Function f = parse_kernel(".reg .b32 %huge<4000000000>; mov.u32 %huge3999999999, 1;");
  EXPECT_EQ(f.registers.size(), 1U);
}

TEST(Parse, ReadsVariablesAndInitializers) {
  const Module m = parse(kHead +
                         ".extern .shared .align 16 .b8 dynamic[];\n"
                         ".global .align 4 .b32 data[2][2] = {{1}, {3, 4}};\n"
                         ".visible .func f() { ret; }\n"
                         ".global .u64 table[3] = {generic(data)+4, f, 7};\n"
                         ".const .f32 half = 0.5;\n"
                         ".global .attribute(.managed) .s32 managed;\n");
  EXPECT_EQ(m.variables[0].extents, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(m.variables[0].linkage, Linkage::extern_);
  EXPECT_EQ(m.variables[1].init->bytes,
            (std::vector<std::uint8_t>{1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}));
  ASSERT_EQ(m.variables[2].init->addresses.size(), 2U);
  EXPECT_TRUE(m.variables[2].init->addresses[0].generic);
  EXPECT_EQ(m.variables[2].init->addresses[0].offset, 4);
  EXPECT_EQ(m.symbols[m.variables[2].init->addresses[1].symbol], "f");
  EXPECT_EQ(m.variables[3].init->bytes, (std::vector<std::uint8_t>{0, 0, 0, 0x3f}));
  EXPECT_EQ(m.variables[4].attributes, ".attribute(.managed)");
}

TEST(Parse, ReadsSitesAndTheCallsThatTheyWereInlinedAt) {
  const Module m =
      parse(kHead +
            ".file 1 \"a.cu\"\n.entry k() {\n.loc 1 10 3\n"
            ".loc 2 20 5, function_name $L__info_string0, inlined_at 1 10 3\nret;\n}\n.file 2 \"b.h\"\n");
  const Site& site = m.sites[std::get<Instr>(m.functions[0].body[0]).site];
  EXPECT_EQ(m.files[site.file], "b.h");
  EXPECT_EQ(site.line, 20U);
  EXPECT_EQ(m.files[m.sites[site.parent].file], "a.cu");
  EXPECT_EQ(m.sites[site.parent].line, 10U);
}

TEST(Parse, ReadsTuningAndCalls) {
  const Module m =
      parse(kHead +
            ".extern .func (.param .b32 r) g(.param .b64 a);\n.entry k()\n.maxntid 128, "
            "2\n.minnctapersm 3\n.maxnreg 64\n"
            ".reqnctapercluster 2, 1, 1\n{\n.reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
            "{ .param .b64 a0; .param .b32 r0; st.param.b64 [a0], %rd1; call.uni (r0), g, (a0); "
            "ld.param.b32 %r1, [r0]; }\n"
            "proto: .callprototype (.param .b32 _) _ (.param .b64 _);\n"
            "{ .param .b64 a0; .param .b32 r0; call (r0), %rd2, (a0), proto; }\nret;\n}\n");
  const Function& f = *m.find_function("k");
  EXPECT_EQ(f.tuning.maxntid, (std::array<int, 3>{128, 2, 1}));
  EXPECT_EQ(f.tuning.minnctapersm, 3);
  EXPECT_EQ(f.tuning.maxnreg, 64);
  EXPECT_EQ(f.tuning.reqnctapercluster[0], 2);
  EXPECT_EQ(f.prototypes.size(), 1U);
  const Instr& direct = instr(f, 1);
  ASSERT_EQ(direct.operands.size(), 3U);
  EXPECT_EQ(direct.operands[0].kind, Operand::Kind::list);
  EXPECT_EQ(m.symbols[direct.operands[1].id], "g");
  const Instr& indirect = instr(f, 3);
  EXPECT_EQ(indirect.operands[1].kind, Operand::Kind::reg);
  EXPECT_EQ(indirect.operands[3].kind, Operand::Kind::label);
  EXPECT_EQ(f.variables.size(), 4U);
  EXPECT_EQ(f.variables[2].name, "a0_1");
}

TEST(Parse, ErrorsNameFileLineAndWhatWasExpected) {
  struct Row {
    std::string text;
    const char* what;
  };
  const Row rows[] = {
      {"", "k.ptx:1: error: expected '.version' first, found the end of the text"},
      {".version 8\n", "k.ptx:1: error: expected a version such as 8.0, found '8'"},
      {kHead + "nonsense", "k.ptx:4: error: expected a statement, found 'nonsense'"},
      {kHead + ".global .b32 x[99999999999999];",
       "k.ptx:4: error: an array extent must be an integer from 0 to 1099511627776"},
      {kHead + ".global .b32 y = {1,2};",
       "k.ptx:4: error: initializer of 'y' has 8 bytes; the variable has 4"},
      {kHead + ".visible .entry k() .foo { ret; }",
       "k.ptx:4: error: unknown directive '.foo' of a function; known: .reqntid .maxntid .maxnreg "
       ".minnctapersm "
       ".reqnctapercluster .maxclusterrank .explicitcluster .noreturn .pragma"},
      {kernel("add.s32 %r1, %r2, %r99;"), "k.ptx:7: error: unknown register '%r99'"},
      {kernel("bra nowhere;"), "k.ptx:7: error: label 'nowhere' is not defined"},
      {kernel("x: x: ret;"), "k.ptx:7: error: label 'x' is defined twice"},
      {kernel("foo.bar %r1;"), "k.ptx:7: error: unknown instruction 'foo'"},
      {kernel("@%r1 bra x; x: ret;"), "k.ptx:7: error: guard '%r1' is no predicate register"},
      {kernel("mov.u32 %r1, undefined;"),
       "k.ptx:7: error: unknown name 'undefined'; declare it before use"},
      {kernel("mov.u32 %r1, 0f12;"),
       "k.ptx:7: error: a 0f literal has 8 hexadecimal digits, a 0d literal 16"},
      {kernel("mov.u32 %r1, 99999999999999999999;"),
       "k.ptx:7: error: malformed or too large integer literal"},
      {kernel("ld.global.u32 %r1, [%rd1;"),
       "k.ptx:7: error: expected ']' after an address, found ';'"},
      {kernel("ld.global.u32 %r1, [%rd1+1.5];"), "k.ptx:7: error: an offset must be an integer"},
      {kernel("{ ret;"), "k.ptx:9: error: function body is not closed by '}'"},
      {kernel("/* open"), "k.ptx:7: error: comment is not closed"},
      {kernel("mov.u32 %r1, \x01;"), "k.ptx:7: error: unexpected byte 0x01"},
      {kernel("mov.u32 %r1, " + std::string(100, '(') + "1;"),
       "k.ptx:7: error: constant expression nests deeper than 64 levels"},
      {kernel(std::string(300, '{')), "k.ptx:7: error: blocks nest deeper than 256 levels"},
  };
  for (const Row& row : rows) {
    try {
      parse(row.text, "dir/k.ptx");
      ADD_FAILURE() << row.what;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), row.what);
    }
  }
}

TEST(Parse, LowestVersionsOfCompiledKernels) {
  namespace fs = std::filesystem;
  const auto version = [](const std::string& path) {
    std::ifstream in(fs::path(TILEWRIGHT_SOURCE_DIR) / "test/data/ptx_corpus" / path);
    std::ostringstream text;
    text << in.rdbuf();
    Module m = parse(text.str());
    m.version = {};
    return to_string(required_version(m));
  };
  EXPECT_EQ(version("k01_reduce_shfl/sm_80.ptx"), "7.0");
  EXPECT_EQ(version("k02_gemm_tiled/sm_80.ptx"), "7.0");
  EXPECT_EQ(version("k09_cub_scan/sm_80.ptx"), "7.0");
  EXPECT_EQ(version("k20_mma_ldmatrix/sm_80.ptx"), "7.0");
  EXPECT_EQ(version("k16_tma_bulk/sm_90a.ptx"), "8.0");
  EXPECT_EQ(version("k18_wgmma/sm_90a.ptx"), "8.0");
}

}  // namespace
}  // namespace tilewright::ptx

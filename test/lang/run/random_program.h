// SPDX-License-Identifier: Apache-2.0
// Random kernels as trees: traced on one side, interpreted thread by thread on the other.
#pragma once

#include "tilewright/type.h"

#include <array>
#include <cstdint>
#include <vector>

namespace tilewright::test {

/// A scalar expression; `operands` index the program's expressions, which are in order.
struct Expr {
  enum class Op {
    constant,
    input,     ///< element `which` of the thread's row of inputs
    variable,  ///< snapshot of variable `which`
    counter,   ///< of the loop that is `which` levels out, s32
    thread,    ///< thread_idx().x, s32
    add,
    sub,
    mul,
    div,
    rem,
    and_,
    or_,
    xor_,
    shl,
    shr,
    min,
    max,
    neg,
    not_,
    select,  ///< condition, a, b
    less,
    equal,
    convert,
  };
  Op op = Op::constant;
  Type type = s32;
  std::uint64_t bits = 0;  ///< of a constant
  int which = 0;
  std::vector<int> operands;
};

/// One statement; bodies are nested lists.
struct Statement {
  enum class Kind { assign, add_assign, copy_var, branch, loop, break_, continue_ };
  Kind kind = Kind::assign;
  int variable = 0;
  int expr = 0;  ///< value, condition, or the loop's end
  int begin = 0, step = 1;
  std::vector<Statement> body, otherwise;
};

struct Program {
  std::vector<Type> variables;
  std::vector<Expr> exprs;
  std::vector<Statement> body;
};

constexpr int kInputs = 4;  ///< elements of a thread's row: s32, u32, f32, f16 bits
constexpr std::array<Type, 4> kProgramTypes = {s32, u32, f32, f16};

Program random_program(std::uint64_t seed);
/// The variables at the end, for a thread with this row.
std::vector<std::uint64_t> interpret(const Program& program, int thread,
                                     const std::array<std::uint64_t, kInputs>& row);

}  // namespace tilewright::test

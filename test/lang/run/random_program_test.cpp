// SPDX-License-Identifier: Apache-2.0
// Random kernels compute on the device what a plain interpreter computes: folding, sharing of
// common subexpressions, constants added late, Vars and control flow.
#include "random_program.h"

#include "reference.h"
#include "run_fixture.h"
#include "tilewright/control.h"
#include "tilewright/module.h"

#include <random>

namespace tilewright::test {
namespace {

using RandomProgram = RunTest;

class ProgramTracer {
 public:
  ProgramTracer(const Program& program, const Tensor& inputs, const Tensor& outputs)
      : program_(program), outputs_(outputs), thread_(thread_idx().x) {
    for (int i = 0; i < kInputs; ++i) {
      Type type = kProgramTypes[static_cast<std::size_t>(i)];
      Value raw = inputs(thread_, i).load();
      inputs_.push_back(type == u32   ? raw
                        : type == f16 ? raw.to(u16).bitcast(f16)
                                      : raw.bitcast(type));
    }
    for (Type type : program.variables)
      variables_.emplace_back(type, Arg(1));
  }

  void trace() {
    statements(program_.body);
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      Value value = variables_[i];
      Type type = value.type();
      Value raw = type == f16 ? value.bitcast(u16).to(u32) : value.bitcast(u32);
      outputs_(thread_, static_cast<int>(i)) = raw;
    }
  }

 private:
  void statements(const std::vector<Statement>& body) {
    for (const Statement& s : body)
      statement(s);
  }

  void statement(const Statement& s) {
    Var& variable = variables_[static_cast<std::size_t>(s.variable)];
    switch (s.kind) {
      case Statement::Kind::assign:
        variable = operand(s.expr);
        return;
      case Statement::Kind::add_assign:
        variable += operand(s.expr);
        return;
      case Statement::Kind::copy_var:
        variable = variables_[static_cast<std::size_t>(s.expr)];
        return;
      case Statement::Kind::branch:
        branch(s);
        return;
      case Statement::Kind::loop:
        for_(Arg(s.begin), operand(s.expr), Arg(s.step), [&](const Value& i) {
          counters_.push_back(i);
          statements(s.body);
          counters_.pop_back();
        });
        return;
      case Statement::Kind::break_:
        break_();
        return;
      case Statement::Kind::continue_:
        continue_();
        return;
    }
  }

  void branch(const Statement& s) {
    Else side = if_(operand(s.expr), [&] { statements(s.body); });
    if (!s.otherwise.empty()) side.else_([&] { statements(s.otherwise); });
  }

  /// A Var itself where the expression says so.
  Arg operand(int index) {
    const Expr& e = program_.exprs[static_cast<std::size_t>(index)];
    if (e.op == Expr::Op::variable && e.bits == 1) {
      return variables_[static_cast<std::size_t>(e.which)];
    }
    return value(index);
  }

  Value leaf(const Expr& e) {
    auto which = static_cast<std::size_t>(e.which);
    switch (e.op) {
      case Expr::Op::constant:
        return is_float(e.type) ? constant(e.type, as_real(e.type, e.bits))
                                : constant(e.type, as_signed(e.type, e.bits));
      case Expr::Op::input:
        return inputs_[which];
      case Expr::Op::variable:
        return variables_[which];
      case Expr::Op::counter:
        return counters_[which];
      default:
        return thread_;
    }
  }

  Value value(int index) {
    const Expr& e = program_.exprs[static_cast<std::size_t>(index)];
    if (e.operands.empty()) return leaf(e);
    Arg a = operand(e.operands[0]);
    if (e.op == Expr::Op::neg) return -a;
    if (e.op == Expr::Op::not_) return ~a;
    if (e.op == Expr::Op::convert) return a.settled().to(e.type);
    Arg b = operand(e.operands[1]);
    if (e.op == Expr::Op::less) return a < b;
    if (e.op == Expr::Op::equal) return a == b;
    if (e.op == Expr::Op::select) return select(a, b, operand(e.operands[2]));
    return binary_value(e.op, a, b);
  }

  static Value binary_value(Expr::Op op, const Arg& a, const Arg& b) {
    using enum Expr::Op;
    if (op == add) return a + b;
    if (op == sub) return a - b;
    if (op == mul) return a * b;
    if (op == div) return a / b;
    if (op == rem) return a % b;
    if (op == and_) return a & b;
    if (op == or_) return a | b;
    if (op == xor_) return a ^ b;
    if (op == shl) return a << b;
    if (op == shr) return a >> b;
    if (op == min) return tilewright::min(a, b);
    return tilewright::max(a, b);
  }

  const Program& program_;
  Tensor outputs_;
  Value thread_;
  std::vector<Value> inputs_;
  std::vector<Var> variables_;
  std::vector<Value> counters_;
};

constexpr std::size_t kThreads = 32;

Data random_inputs(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::array<std::uint64_t, 8> kEdges = {0,          1, 0xffffffff, 0x80000000,
                                                   0x7fffffff, 5, 64,         100};
  Data inputs(u32, std::vector<std::int64_t>{kThreads, kInputs});
  for (std::size_t i = 0; i < inputs.bits.size(); ++i) {
    std::uint64_t raw = random();
    bool edge = raw % 3 == 0;
    Type type = kProgramTypes[i % kInputs];
    std::uint64_t number = edge ? kEdges[(raw >> 8) % kEdges.size()] : (raw >> 16) & 0xffffffff;
    if (is_float(type))
      number = real_bits(type, edge ? -1.5 : static_cast<double>(raw >> 54) / 64.0);
    inputs.bits[i] = number;
  }
  return inputs;
}

/// Tests and interprets one program; `seed` names it in a failure.
class Property : public RandomProgram, public ::testing::WithParamInterface<int> {};

TEST_P(Property, ProgramsComputeWhatTheInterpreterDoes) {
  for (int round = 0; round < 200; ++round) {
    auto seed = static_cast<std::uint64_t>(GetParam() * 1000 + round);
    Program program = random_program(seed);
    Data inputs = random_inputs(seed);
    auto count = static_cast<std::int64_t>(program.variables.size());
    Data outputs(u32, {static_cast<std::int64_t>(kThreads), count});
    auto body = [&](const Tensor& in, const Tensor& out) {
      ProgramTracer(program, in, out).trace();
    };
    run({}, body, inputs, outputs);
    for (std::size_t t = 0; t < kThreads; ++t) {
      std::array<std::uint64_t, kInputs> row{};
      for (std::size_t i = 0; i < kInputs; ++i)
        row[i] = inputs.bits[t * kInputs + i];
      auto expected = interpret(program, static_cast<int>(t), row);
      for (std::size_t v = 0; v < expected.size(); ++v) {
        std::uint64_t got = outputs.bits[t * expected.size() + v];
        ASSERT_TRUE(same(program.variables[v], got, expected[v]))
            << "seed " << seed << ", thread " << t << ", variable " << v << " of type "
            << name(program.variables[v]) << ": " << std::hex << got << ", expected "
            << expected[v];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Property, ::testing::Range(0, 10));

}  // namespace
}  // namespace tilewright::test

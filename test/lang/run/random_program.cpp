// SPDX-License-Identifier: Apache-2.0
// Generation and interpretation of random kernels.
#include "random_program.h"

#include "reference.h"

#include <cstddef>
#include <random>

namespace tilewright::test {
namespace {

constexpr std::array<std::uint64_t, 12> kIntegers = {
    0, 1, 2, 3, 7, 32, 100, 0xffffffff, 0xfffffffe, 0x7fffffff, 0x80000000, 0xffffff00};
constexpr std::array<double, 8> kReals = {0.0, -0.0, 1.0, -2.5, 0.333, 1e4, -60000.0, 3e-6};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  Program program() {
    for (int i = 0; i < 6; ++i)
      program_.variables.push_back(kProgramTypes[static_cast<std::size_t>(i) % 4]);
    program_.body = block(6, 0);
    return std::move(program_);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  Type any_type() { return kProgramTypes[static_cast<std::size_t>(below(4))]; }

  int add(Expr expr) {
    program_.exprs.push_back(std::move(expr));
    return static_cast<int>(program_.exprs.size()) - 1;
  }

  int constant(Type type) {
    auto pick = static_cast<std::size_t>(below(12));
    if (!is_float(type) && below(2) == 0) {  // near the bounds of counters and thread indices
      return add(
          {Expr::Op::constant, type, cut(type, static_cast<std::uint64_t>(below(40) - 4)), 0, {}});
    }
    std::uint64_t raw =
        is_float(type) ? real_bits(type, kReals[pick % kReals.size()]) : kIntegers[pick];
    return add({Expr::Op::constant, type, raw, 0, {}});
  }

  int leaf(Type type) {
    int choice = below(10);
    if (choice < 2) return constant(type);
    if (choice < 4) {
      int which = 0;
      while (kProgramTypes[static_cast<std::size_t>(which)] != type)
        ++which;
      return add({Expr::Op::input, type, 0, which, {}});
    }
    if (choice < 6 && type == s32 && below(2) == 0) return add({Expr::Op::thread, s32, 0, 0, {}});
    if (choice < 8 && type == s32 && loops_ > 0) {
      return add({Expr::Op::counter, s32, 0, below(loops_), {}});
    }
    std::vector<int> fitting;
    for (std::size_t i = 0; i < program_.variables.size(); ++i) {
      if (program_.variables[i] == type) fitting.push_back(static_cast<int>(i));
    }
    int variable = fitting[static_cast<std::size_t>(below(static_cast<int>(fitting.size())))];
    // An odd constant in `bits`: the Var itself is the operand, not a snapshot.
    return add({Expr::Op::variable, type, static_cast<std::uint64_t>(below(2)), variable, {}});
  }

  int condition(int depth) {
    Type type = below(2) == 0 ? s32 : any_type();
    auto op = below(3) != 0 ? Expr::Op::less : Expr::Op::equal;
    int a = value(type, depth - 1);
    int b = value(type, depth - 1);
    return add({op, pred, 0, 0, {a, b}});
  }

  int value(Type type, int depth) {
    if (depth <= 0 || below(6) == 0) return leaf(type);
    int choice = below(16);
    if (choice == 0) {
      Type from = any_type();
      int a = value(from, depth - 1);
      return add({Expr::Op::convert, type, 0, 0, {a}});
    }
    if (choice == 1) {
      int c = condition(depth - 1);
      int a = value(type, depth - 1);
      int b = value(type, depth - 1);
      return add({Expr::Op::select, type, 0, 0, {c, a, b}});
    }
    if (choice == 2) {
      int a = value(type, depth - 1);
      return add({Expr::Op::neg, type, 0, 0, {a}});
    }
    return binary_value(type, depth, choice);
  }

  int binary_value(Type type, int depth, int choice) {
    using enum Expr::Op;
    static constexpr std::array<Expr::Op, 5> kReal = {add, sub, mul, min, max};
    static constexpr std::array<Expr::Op, 15> kInteger = {add, sub,  mul, add, sub, div, rem, and_,
                                                          or_, xor_, shl, shr, min, max, rem};
    auto number = static_cast<std::size_t>(choice);
    Expr::Op op = is_float(type) ? kReal[number % 5] : kInteger[number % 15];
    int a = value(type, depth - 1);
    bool by_constant = below(3) == 0;
    int b = by_constant ? this->constant(type) : value(type, depth - 1);
    if (op == shl || op == shr)
      b = by_constant
              ? this->add({constant_op(), u32, static_cast<std::uint64_t>(below(40)), 0, {}})
              : value(u32, 1);
    if (op == div || op == rem) b = divisor(type, b, by_constant);
    return this->add({op, type, 0, 0, {a, b}});
  }

  static Expr::Op constant_op() { return Expr::Op::constant; }

  /// Never zero: an odd number, or a constant.
  int divisor(Type type, int b, bool by_constant) {
    if (by_constant) {
      Expr& expr = program_.exprs[static_cast<std::size_t>(b)];
      if (expr.bits == 0) expr.bits = 5;
      return b;
    }
    int one = add({Expr::Op::constant, type, 1, 0, {}});
    return add({Expr::Op::or_, type, 0, 0, {b, one}});
  }

  std::vector<Statement> block(int length, int depth) {
    std::vector<Statement> statements;
    for (int i = 0; i < length; ++i)
      statements.push_back(statement(depth));
    return statements;
  }

  Statement statement(int depth) {
    Statement s;
    int choice = below(10);
    s.variable = below(static_cast<int>(program_.variables.size()));
    Type type = program_.variables[static_cast<std::size_t>(s.variable)];
    if (depth < 3 && choice < 2) return branch(depth);
    if (depth < 2 && choice < 4) return loop(depth);
    if (choice == 4) {
      s.kind = Statement::Kind::copy_var;
      do {
        s.expr = below(static_cast<int>(program_.variables.size()));
      } while (program_.variables[static_cast<std::size_t>(s.expr)] != type);
      return s;
    }
    s.kind = choice == 5 ? Statement::Kind::add_assign : Statement::Kind::assign;
    s.expr = value(type, 3);
    return s;
  }

  Statement branch(int depth) {
    Statement s;
    s.kind = Statement::Kind::branch;
    s.expr = condition(2);
    s.body = block(1 + below(3), depth + 1);
    if (below(2) == 0) s.otherwise = block(1 + below(2), depth + 1);
    if (loops_ > 0 && below(3) == 0) {
      Statement leave;
      leave.kind = below(2) == 0 ? Statement::Kind::break_ : Statement::Kind::continue_;
      s.body.push_back(leave);
    }
    return s;
  }

  Statement loop(int depth) {
    Statement s;
    s.kind = Statement::Kind::loop;
    s.begin = below(7) - 3;
    s.step = 1 + below(3);
    int x = value(s32, 2);
    int small = add({Expr::Op::constant, s32, static_cast<std::uint64_t>(3 + below(5)), 0, {}});
    s.expr = below(2) == 0 ? small : add({Expr::Op::and_, s32, 0, 0, {x, small}});
    ++loops_;
    s.body = block(1 + below(3), depth + 1);
    --loops_;
    return s;
  }

  std::mt19937_64 random_;
  Program program_;
  int loops_ = 0;
};

enum class Flow { next, break_, continue_ };

class Interpreter {
 public:
  Interpreter(const Program& program, int thread, const std::array<std::uint64_t, kInputs>& row)
      : program_(program), thread_(thread), row_(row) {
    for (Type type : program.variables)
      variables_.push_back(is_float(type) ? real_bits(type, 1.0) : 1);
  }

  Flow run(const std::vector<Statement>& body) {
    for (const Statement& s : body) {
      Flow flow = step(s);
      if (flow != Flow::next) return flow;
    }
    return Flow::next;
  }
  const std::vector<std::uint64_t>& variables() const { return variables_; }

 private:
  Flow step(const Statement& s) {
    auto variable = static_cast<std::size_t>(s.variable);
    switch (s.kind) {
      case Statement::Kind::assign:
        variables_[variable] = eval(s.expr);
        return Flow::next;
      case Statement::Kind::add_assign:
        variables_[variable] =
            binary(Binary::add, program_.variables[variable], variables_[variable], eval(s.expr));
        return Flow::next;
      case Statement::Kind::copy_var:
        variables_[variable] = variables_[static_cast<std::size_t>(s.expr)];
        return Flow::next;
      case Statement::Kind::branch:
        return run(eval(s.expr) != 0 ? s.body : s.otherwise);
      case Statement::Kind::loop:
        return loop(s);
      case Statement::Kind::break_:
        return Flow::break_;
      case Statement::Kind::continue_:
        return Flow::continue_;
    }
    return Flow::next;
  }

  Flow loop(const Statement& s) {
    std::int64_t end = as_signed(s32, eval(s.expr));
    for (std::int64_t i = s.begin; i < end; i += s.step) {
      counters_.push_back(cut(s32, static_cast<std::uint64_t>(i)));
      Flow flow = run(s.body);
      counters_.pop_back();
      if (flow == Flow::break_) break;
    }
    return Flow::next;
  }

  std::uint64_t eval(int index) const {
    const Expr& e = program_.exprs[static_cast<std::size_t>(index)];
    auto arg = [&](std::size_t i) { return eval(e.operands[i]); };
    auto type_of = [&](std::size_t i) {
      return program_.exprs[static_cast<std::size_t>(e.operands[i])].type;
    };
    using enum Expr::Op;
    switch (e.op) {
      case constant:
        return e.bits;
      case input:
        return row_[static_cast<std::size_t>(e.which)];
      case variable:
        return variables_[static_cast<std::size_t>(e.which)];
      case counter:
        return counters_[static_cast<std::size_t>(e.which)];
      case thread:
        return static_cast<std::uint64_t>(thread_);
      case neg:
        return negate(e.type, arg(0));
      case not_:
        return cut(e.type, ~arg(0));
      case select:
        return arg(0) != 0 ? arg(1) : arg(2);
      case less:
        return compare(Compare::lt, type_of(0), arg(0), arg(1)) ? 1 : 0;
      case equal:
        return compare(Compare::eq, type_of(0), arg(0), arg(1)) ? 1 : 0;
      case Expr::Op::convert:
        return test::convert(e.type, type_of(0), arg(0));
      default:
        break;
    }
    auto op = static_cast<Binary>(static_cast<int>(e.op) - static_cast<int>(add));
    return binary(op, e.type, arg(0), arg(1));
  }

  const Program& program_;
  int thread_;
  const std::array<std::uint64_t, kInputs>& row_;
  std::vector<std::uint64_t> variables_;
  std::vector<std::uint64_t> counters_;
};

}  // namespace

Program random_program(std::uint64_t seed) { return Generator(seed).program(); }

std::vector<std::uint64_t> interpret(const Program& program, int thread,
                                     const std::array<std::uint64_t, kInputs>& row) {
  Interpreter interpreter(program, thread, row);
  interpreter.run(program.body);
  return interpreter.variables();
}

}  // namespace tilewright::test

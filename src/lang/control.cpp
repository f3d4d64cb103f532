// SPDX-License-Identifier: Apache-2.0
// Branches and loops as labels and guarded branches.
#include "tilewright/control.h"

#include "lang/facts.h"
#include "lang/tracer.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

namespace tilewright {

using lang::Region;
using lang::RegionKind;
using lang::Tracer;

namespace {

void branch(Tracer& tracer, ptx::LabelId target, SourceLoc at) {
  tracer.emit("bra", {ptx::label(target)}, at);
}

void branch_unless(Tracer& tracer, const Value& condition, ptx::LabelId target, SourceLoc at) {
  ptx::RegId predicate = tracer.reg_of(condition, at);
  tracer.emit("bra", {ptx::label(target)}, at).guard = ptx::Guard{predicate, true};
}

void branch_if(Tracer& tracer, const Value& condition, ptx::LabelId target, SourceLoc at) {
  ptx::RegId predicate = tracer.reg_of(condition, at);
  tracer.emit("bra", {ptx::label(target)}, at).guard = ptx::Guard{predicate, false};
}

Value condition_of(const Arg& condition, const char* what) {
  Value value = condition.natural();
  if (value.type() != pred) {
    throw Error(ErrorKind::user,
                std::string(what) + ": the condition has type " + std::string(name(value.type())) +
                    "; it must be a predicate, such as x != 0",
                condition.at());
  }
  return value;
}

}  // namespace

namespace detail {

IfScope::IfScope(const Arg& condition, const char* what) {
  Value value = condition_of(condition, what);
  Tracer& tracer = Tracer::current(what, condition.at());
  ptx::LabelId end = tracer.new_label("else");
  if (!value.is_constant()) branch_unless(tracer, value, end, condition.at());
  Region& region = tracer.open(RegionKind::branch, value.uniformity());
  region.end_label = end;
  if (value.is_constant()) {
    done_ = value.constant() == 0;
    region.taken = done_ ? Region::Taken::never : Region::Taken::always;
  }
}

IfScope::~IfScope() {
  Tracer* tracer = Tracer::current_or_null();
  if (tracer != nullptr) tracer->close_branch();
}

ElseScope::ElseScope(SourceLoc at) {
  Tracer& tracer = Tracer::current("else_", at);
  if (!tracer.last_branch_is_open_for_else()) {
    throw Error(
        ErrorKind::user,
        "else_: no if_ ends right before it; write if_(c, ...).else_(...) with nothing between",
        at);
  }
  ptx::LabelId end = tracer.new_label("endif");
  Region::Taken taken = tracer.last_branch_taken();
  if (taken == Region::Taken::by_thread) {
    ptx::LabelId otherwise = tracer.last_branch_label();
    tracer.function().body.pop_back();
    branch(tracer, end, at);
    tracer.emit_label(otherwise);
  }
  done_ = taken == Region::Taken::always;
  Region& region = tracer.open(RegionKind::branch, tracer.last_branch_divergence());
  region.end_label = end;
  region.taken = Region::Taken::ended;
}

ElseScope::~ElseScope() {
  Tracer* tracer = Tracer::current_or_null();
  if (tracer != nullptr) tracer->close_branch();
}

struct ForScope::Bounds {
  Value begin, end, step;
  SourceLoc at;
};

namespace {

Type loop_type(const Arg& begin, const Arg& end, const Arg& step) {
  for (const Arg* arg : {&end, &begin, &step}) {
    if (!arg->is_literal()) return arg->value().type();
  }
  return s32;
}

/// A counter whose last step leaves the type would begin again below the end.
void refuse_wrapping(const Value& begin, const Value& end, const Value& step, SourceLoc at) {
  if (step.type() != s32) return;
  if (!begin.is_constant() || !end.is_constant() || !step.is_constant()) return;
  std::int64_t first = begin.constant();
  std::int64_t steps = (end.constant() - first + step.constant() - 1) / step.constant();
  std::int64_t past = first + steps * step.constant();
  if (end.constant() <= first || past <= std::numeric_limits<std::int32_t>::max()) return;
  throw Error(ErrorKind::user,
              "for_: the counter of type s32 would reach " + std::to_string(past) +
                  ", wrap and never end; count in s64",
              at);
}

}  // namespace

ForScope::ForScope(const Arg& begin, const Arg& end, const Arg& step)
    : ForScope([&] {
        Type type = loop_type(begin, end, step);
        if (!is_integer(type) || bits(type) < 32) {
          throw Error(ErrorKind::user,
                      "for_: the counter has type " + std::string(name(type)) +
                          "; it must be s32, u32, s64 or u64",
                      end.at());
        }
        // A Var given as a bound is read once, before the loop.
        auto fixed = [&](const Arg& arg) {
          Value value = arg.as(type, "for_");
          return ValueAccess::direct_var(value) ? ValueAccess::snapshot(value, arg.at()) : value;
        };
        Bounds bounds{fixed(begin), fixed(end), fixed(step), end.at()};
        if (bounds.step.is_constant() && bounds.step.constant() <= 0) {
          throw Error(ErrorKind::user,
                      "for_: the step is " + std::to_string(bounds.step.constant()) +
                          "; it must be positive",
                      step.at());
        }
        refuse_wrapping(bounds.begin, bounds.end, bounds.step, step.at());
        return bounds;
      }()) {}

ForScope::ForScope(Bounds bounds)
    : counter_(
          bounds.begin.type(), Arg(bounds.begin, bounds.at),
          std::max({bounds.begin.uniformity(), bounds.step.uniformity(), bounds.end.uniformity(),
                    Tracer::current("for_", bounds.at).divergence()})),
      end_(bounds.end),
      step_(bounds.step),
      index_(ValueAccess::constant(bounds.begin.type(), 0)),
      at_(bounds.at) {
  Tracer& tracer = Tracer::current("for_", at_);
  top_ = tracer.new_label("for");
  next_ = tracer.new_label("next");
  exit_ = tracer.new_label("endfor");
  Facts facts{std::gcd(bounds.begin.facts().divisor, step_.facts().divisor),
              bounds.begin.facts().lo, bounds.end.facts().hi};
  if (facts.hi > facts.lo && facts.hi != lang::facts_of_type(counter_.type()).hi) facts.hi -= 1;
  Value enters = Arg(bounds.begin, at_) < Arg(end_, at_);
  if (!enters.is_constant() || enters.constant() == 0) {
    branch_unless(tracer, enters, exit_, at_);
  }
  // ptxas heeds it only behind the label, which would roll every loop up: moe_topk was 2 to 6 %
  // slower so on an H200 (ptxas 13.0).
  tracer.emit_directive(".pragma \"nounroll\"");
  tracer.emit_label(top_);
  Region& region = tracer.open(RegionKind::loop, counter_.uniformity());
  region.break_label = exit_;
  region.continue_label = next_;
  ValueAccess::replace(index_, Value(counter_, at_).assume(facts));
}

ForScope::~ForScope() {
  Tracer* tracer = Tracer::current_or_null();
  if (tracer == nullptr || tracer->abandoned()) return;
  tracer->emit_label(next_);
  // After a break_ of some threads the others still agree on the counter: no promise is checked.
  Value next = Arg(counter_, at_) + Arg(step_, at_);
  TW_ASSERT(tracer->retarget(next, ValueAccess::reg(counter_)), "a sum is one new instruction");
  Value again = Arg(counter_, at_) < Arg(end_, at_);
  branch_if(*tracer, again, top_, at_);
  tracer->close();
  tracer->emit_label(exit_);
}

WhileScope::WhileScope(SourceLoc at) {
  Tracer& tracer = Tracer::current("while_", at);
  top_ = tracer.new_label("while");
  exit_ = tracer.new_label("endwhile");
  tracer.emit_directive(".pragma \"nounroll\"");
  tracer.emit_label(top_);
  Region& region = tracer.open(RegionKind::loop, Uniformity::grid);
  region.break_label = exit_;
  region.continue_label = top_;
}

void WhileScope::condition(const Arg& condition) {
  Value value = condition_of(condition, "while_");
  Tracer& tracer = Tracer::current("while_", condition.at());
  if (!value.is_constant() && !ValueAccess::direct_var(value) &&
      ValueAccess::region(value) != tracer.innermost().id) {
    throw Error(ErrorKind::user,
                "while_: the condition was computed before the loop, and stays as it is; compute "
                "it inside the function that gives it, from a Var or from memory",
                condition.at());
  }
  branch_unless(tracer, value, exit_, condition.at());
  tracer.diverge(value.uniformity(), tracer.innermost());
}

WhileScope::~WhileScope() {
  Tracer* tracer = Tracer::current_or_null();
  if (tracer == nullptr || tracer->abandoned()) return;
  branch(*tracer, top_, {});
  tracer->close();
  tracer->emit_label(exit_);
}

}  // namespace detail

namespace {

void leave_loop(const char* what, bool to_next, SourceLoc at) {
  Tracer& tracer = Tracer::current(what, at);
  Region* loop = tracer.innermost_loop();
  if (loop == nullptr) {
    throw Error(ErrorKind::user, std::string(what) + ": there is no for_ or while_ around it", at);
  }
  branch(tracer, to_next ? loop->continue_label : loop->break_label, at);
  tracer.diverge(tracer.divergence(), *loop);
}

}  // namespace

void break_(SourceLoc at) { leave_loop("break_", false, at); }
void continue_(SourceLoc at) { leave_loop("continue_", true, at); }

void return_(SourceLoc at) {
  Tracer& tracer = Tracer::current("return_", at);
  if (tracer.in_function()) {
    throw Error(ErrorKind::user,
                "return_: ends the thread, and stands in the function_ '" + tracer.function().name +
                    "'; return from its body, with what a branch decides in a Var",
                at);
  }
  tracer.emit("ret", {}, at);
  tracer.diverge_all(tracer.divergence());
}

}  // namespace tilewright

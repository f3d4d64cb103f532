// SPDX-License-Identifier: Apache-2.0
// Control flow that the device decides: if_, for_, while_, and the macros over them.
#pragma once

#include "tilewright/value.h"

#include <cstdint>

namespace tilewright {

namespace detail {

/// Opens a conditional region; the destructor closes it.
class IfScope {
 public:
  IfScope(const Arg& condition, const char* what);
  IfScope(const IfScope&) = delete;
  IfScope& operator=(const IfScope&) = delete;
  ~IfScope();
  bool once() { return !done_ && (done_ = true); }

 private:
  bool done_ = false;
};

/// Opens the other side of the if_ that has just been closed.
class ElseScope {
 public:
  explicit ElseScope(SourceLoc at = SourceLoc::here());
  ElseScope(const ElseScope&) = delete;
  ElseScope& operator=(const ElseScope&) = delete;
  ~ElseScope();
  bool once() { return !done_ && (done_ = true); }

 private:
  bool done_ = false;
};

class ForScope {
 public:
  ForScope(const Arg& begin, const Arg& end, const Arg& step);
  ForScope(const ForScope&) = delete;
  ForScope& operator=(const ForScope&) = delete;
  ~ForScope();
  bool once() { return !done_ && (done_ = true); }
  Value index() const { return index_; }

 private:
  struct Bounds;
  explicit ForScope(Bounds bounds);
  bool done_ = false;
  Var counter_;
  Value end_, step_, index_;
  std::uint32_t top_ = 0, next_ = 0, exit_ = 0;
  SourceLoc at_;
};

class WhileScope {
 public:
  explicit WhileScope(SourceLoc at);
  WhileScope(const WhileScope&) = delete;
  WhileScope& operator=(const WhileScope&) = delete;
  ~WhileScope();
  void condition(const Arg& condition);
  bool once() { return !done_ && (done_ = true); }

 private:
  bool done_ = false;
  std::uint32_t top_ = 0, exit_ = 0;
};

}  // namespace detail

/// What if_() returns, so that else_() can follow at once.
class Else {
 public:
  template <class Body>
  void else_(Body&& body, SourceLoc at = SourceLoc::here()) const {
    detail::ElseScope scope(at);
    if (scope.once()) body();
  }
};

/// Runs `body` on the threads where `condition` (a predicate) holds. A constant condition decides
/// when traced, without a branch. Follow with `.else_([&] { ... })`.
template <class Body>
Else if_(const Arg& condition, Body&& body) {
  detail::IfScope scope(condition, "if_");
  if (scope.once()) body();
  return {};
}

/// for (i = begin; i < end; i += step): `body(Value i)`. The operands have one integer type; `step`
/// is positive. Neither the tracer nor ptxas unrolls it: a C++ loop around traced code does.
template <class Body>
void for_(const Arg& begin, const Arg& end, const Arg& step, Body&& body) {
  detail::ForScope scope(begin, end, step);
  body(scope.index());
}
template <class Body>
void for_(const Arg& end, Body&& body) {
  for_(Arg(0, end.at()), end, Arg(1, end.at()), body);
}

/// While `condition()`, traced at the top of the loop, holds.
template <class Condition, class Body>
void while_(Condition&& condition, Body&& body, SourceLoc at = SourceLoc::here()) {
  detail::WhileScope scope(at);
  scope.condition(Arg(condition(), at));
  body();
}

/// Leaves the innermost for_ or while_.
void break_(SourceLoc at = SourceLoc::here());
/// Goes on with the innermost loop's next iteration.
void continue_(SourceLoc at = SourceLoc::here());
/// Ends the thread.
void return_(SourceLoc at = SourceLoc::here());

}  // namespace tilewright

/// A name of its own for each line, so that macros nest.
#define TW_DETAIL_JOIN_TEXT(a, b) a##b
#define TW_DETAIL_JOIN(a, b) TW_DETAIL_JOIN_TEXT(a, b)
#define TW_DETAIL_SCOPE TW_DETAIL_JOIN(tw_scope_, __LINE__)

/// TW_IF(cond) { ... } TW_ELSE { ... }: if_() and else_() without lambdas.
#define TW_IF(condition) \
  for (::tilewright::detail::IfScope TW_DETAIL_SCOPE((condition), "TW_IF"); TW_DETAIL_SCOPE.once();)
#define TW_ELSE for (::tilewright::detail::ElseScope TW_DETAIL_SCOPE; TW_DETAIL_SCOPE.once();)
/// TW_FOR(i, begin, end, step) { ... }: for_() without a lambda.
#define TW_FOR(i, begin, end, step)                                            \
  for (::tilewright::detail::ForScope TW_DETAIL_SCOPE((begin), (end), (step)); \
       TW_DETAIL_SCOPE.once();)                                                \
    if (const ::tilewright::Value i = TW_DETAIL_SCOPE.index(); true)
/// TW_WHILE(cond) { ... }: while_() without lambdas.
#define TW_WHILE(condition_expression)                                                    \
  for (::tilewright::detail::WhileScope TW_DETAIL_SCOPE(::tilewright::SourceLoc::here()); \
       TW_DETAIL_SCOPE.once();)                                                           \
    if (TW_DETAIL_SCOPE.condition((condition_expression)); true)

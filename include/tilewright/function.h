// SPDX-License-Identifier: Apache-2.0
// Functions that are called rather than inlined: traced bodies, and functions of the user's PTX.
#pragma once

#include "tilewright/call_text.h"
#include "tilewright/value.h"

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tilewright {

namespace detail {

/// A function of the module that is being traced.
struct FunctionHead {
  std::string name;
  std::vector<Type> results, parameters;
};

/// Records the body of a function while it lives.
class FunctionRecorder {
 public:
  FunctionRecorder(const CallText& name, std::span<const Type> parameters);
  FunctionRecorder(const FunctionRecorder&) = delete;
  FunctionRecorder& operator=(const FunctionRecorder&) = delete;
  ~FunctionRecorder();
  const Value& parameter(std::size_t number) const { return values_[number]; }
  FunctionHead finish(std::span<const Value> results);

 private:
  FunctionHead head_;
  std::vector<Value> values_;
  SourceLoc at_;
  bool finished_ = false;
};

FunctionHead extern_head(const CallText& name, std::span<const Type> results,
                         std::span<const Type> parameters);
std::vector<Value> call_function(const FunctionHead& head, std::span<const Arg> arguments,
                                 SourceLoc at);

template <class>
using AnArg = const Arg&;

}  // namespace detail

/// A function of the module, called with one value a parameter: `y = f(x, 3)`. A literal takes the
/// parameter's type. `Result` is void, Value, or std::vector<Value> where it has several.
template <class Result, class... Arguments>
class Function {
 public:
  explicit Function(detail::FunctionHead head) : head_(std::move(head)) {}

  Result operator()(Arguments... arguments, SourceLoc at = SourceLoc::here()) const {
    const std::vector<Arg> given{arguments...};
    std::vector<Value> results = detail::call_function(head_, given, at);
    if constexpr (std::is_same_v<Result, Value>) {
      return std::move(results.front());
    } else if constexpr (!std::is_void_v<Result>) {
      return results;
    }
  }

 private:
  detail::FunctionHead head_;
};

/// Records `body(parameter...)` as a function of its own, emitted once however often it is called:
/// for slow paths and long code used in several places. The body uses its parameters alone, no
/// values of the kernel around it, and is executed by any of a warp's threads, so that it holds no
/// barriers or shuffles. It returns nothing, a Value or a std::vector<Value>. Types have 16, 32 or
/// 64 bits. The same name may be defined again by the same body, which adds nothing:
///   auto slow_sin = function_("slow_sin", [](const Value& x) { ... return y; }, f32);
///   out(i) = slow_sin(x);
template <class Body, std::same_as<Type>... Types>
auto function_(const CallText& name, const Body& body, Types... parameters) {
  const std::vector<Type> types{parameters...};
  detail::FunctionRecorder recorder(name, types);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    using Result = decltype(body(recorder.parameter(I)...));
    using Made = Function<Result, detail::AnArg<Types>...>;
    if constexpr (std::is_void_v<Result>) {
      body(recorder.parameter(I)...);
      return Made(recorder.finish({}));
    } else if constexpr (std::is_same_v<Result, Value>) {
      const Value result = body(recorder.parameter(I)...);
      return Made(recorder.finish({&result, 1}));
    } else {
      static_assert(std::is_same_v<Result, std::vector<Value>>,
                    "a function_ returns nothing, a Value or a std::vector<Value>");
      return Made(recorder.finish(body(recorder.parameter(I)...)));
    }
  }
  (std::index_sequence_for<Types...>{});
}

/// The result of a function that has none.
struct NoResult {};

/// A function that include_ptx() has added, whose signature is checked, or else one that linking
/// adds (AssembleOptions::link):
///   include_ptx(kHashText);
///   auto hash = extern_function("hash", u32, u32, u32);  // u32 hash(u32, u32)
template <std::same_as<Type>... Types>
Function<Value, detail::AnArg<Types>...> extern_function(const CallText& name, Type result,
                                                         Types... parameters) {
  const std::vector<Type> types{parameters...};
  return Function<Value, detail::AnArg<Types>...>(detail::extern_head(name, {&result, 1}, types));
}
template <std::same_as<Type>... Types>
Function<void, detail::AnArg<Types>...> extern_function(const CallText& name, NoResult,
                                                        Types... parameters) {
  const std::vector<Type> types{parameters...};
  return Function<void, detail::AnArg<Types>...>(detail::extern_head(name, {}, types));
}

/// Adds the functions and variables of a PTX text (a whole module: .version, .target, no entry) to
/// the kernel's. Names that are there already must mean the same. The text is part of the kernel: a
/// front key must tell it from others.
void include_ptx(std::string_view text, SourceLoc at = SourceLoc::here());

}  // namespace tilewright

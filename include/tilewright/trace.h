// SPDX-License-Identifier: Apache-2.0
// Running a kernel's body once to record its PTX.
#pragma once

#include "tilewright/int_tuple.h"
#include "tilewright/target.h"
#include "tilewright/tensor.h"
#include "tilewright/tensor_map_arg.h"
#include "tilewright/value.h"
#include "tilewright/view.h"

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tilewright {

namespace ptx {
struct Module;
}  // namespace ptx

/// What a trace knows of a tensor argument. Static leaves of shape and stride are folded into the
/// code; dynamic ones become parameters, whose divisors and bounds every launch checks.
struct TensorArg {
  Type type = Type::none;
  Shape shape;
  Stride stride;
  int alignment_bytes = 1;  ///< that every launch's address has

  friend bool operator==(const TensorArg&, const TensorArg&) = default;
};
/// A number that is passed at each launch.
struct ScalarArg {
  Type type = Type::none;
  Facts facts{};
};

/// Which leaves of a view stay parameters.
struct DynamicModes {
  std::uint32_t extents = 0;  ///< bit i: extent i
  std::uint32_t strides = 0;  ///< bit i: stride i
};
/// The facts of a view: dynamic strides keep the power of two up to 16 bytes that divides them, the
/// address its alignment up to 16; of dynamic extents only the bounds are kept.
TensorArg tensor_arg(const View& view, DynamicModes dynamic = {});
/// Canonical text, part of front keys: "f16 (?,4096):(?{div=8},1) align=16".
std::string to_string(const TensorArg& arg);
/// Whether a dynamic extent is passed as s32 (it is at most 2^30) rather than s64.
bool is_short_extent(const Int& extent);
/// Why a launch with this view may not use code traced for `arg`; empty if it may.
std::string mismatch(const TensorArg& arg, const View& view);

/// One kernel parameter: where its value comes from at a launch.
struct Param {
  enum class Kind : std::uint8_t { address, extent, stride, scalar, tensor_map };
  Kind kind = Kind::address;
  int argument = 0;  ///< which argument of the body
  int mode = 0;      ///< of its shape or stride
  Type type = Type::none;
  TensorMapArg map{};  ///< how to make a tensor_map of the argument
  friend bool operator==(const Param&, const Param&) = default;
};

struct TraceOptions {
  std::string name = "kernel";  ///< says operator and specialisation: shown by profilers
  ptx::Target target{90, 'a'};
  std::array<int, 3> block{0, 1, 1};  ///< printed as .reqntid; x = 0: not known
  int min_blocks_per_sm = 0;          ///< .minnctapersm
  int max_registers = 0;              ///< .maxnreg
  std::array<int, 3> cluster{0, 0, 0};
  SourceLoc at = SourceLoc::here();  ///< the line that errors about these options name
};

/// A recorded kernel.
struct Traced {
  Traced();
  Traced(Traced&& other) noexcept;
  Traced& operator=(Traced&& other) noexcept;
  ~Traced();
  ptx::Module& module() const { return *module_; }  ///< include tilewright/module.h to use it

  std::string entry;
  std::vector<Param> params;
  std::array<int, 3> block{0, 1, 1};

 private:
  ptx::Module* module_;  ///< owned
};

namespace detail {

/// Begins a trace on this thread; finish() ends it.
class Recorder {
 public:
  explicit Recorder(const TraceOptions& options, SourceLoc at);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();
  Tensor parameter(const TensorArg& arg);
  Value parameter(const ScalarArg& arg);
  /// An argument that is absent takes no parameter, and is absent in the body.
  std::optional<Tensor> parameter(const std::optional<TensorArg>& arg) {
    if (!arg) return std::nullopt;
    return parameter(*arg);
  }
  std::optional<Value> parameter(const std::optional<ScalarArg>& arg) {
    if (!arg) return std::nullopt;
    return parameter(*arg);
  }
  TensorMapParam parameter(const TensorMapArg& arg);
  /// A plain number of the host is a constant of the trace.
  template <std::integral T>
  T parameter(T value) {
    return value;
  }
  Traced finish();

 private:
  Value load_parameter(Param param, Facts facts);
  struct State;
  State* state_;
};

template <class Body>
struct Call {
  template <class... Parameters>
  explicit Call(const Body& body, Parameters&&... parameters) {
    body(std::forward<Parameters>(parameters)...);
  }
};

}  // namespace detail

/// Calls `body(parameter...)` once, with a Tensor for each TensorArg (an optional one for an
/// optional argument), a Value for each ScalarArg and a TensorMapParam for each TensorMapArg, and
/// returns what it recorded. Errors carry the line of the mistake.
/// Throws Error(unsupported) for what the target does not have.
template <class Body, class... Args>
Traced trace(const TraceOptions& options, const Body& body, const Args&... args) {
  detail::Recorder recorder(options, options.at);
  // Braces keep the parameters in order.
  detail::Call<Body>{body, recorder.parameter(args)...};
  return recorder.finish();
}

}  // namespace tilewright

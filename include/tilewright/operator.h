// SPDX-License-Identifier: Apache-2.0
// What an operator is to the outside: one schema, and functions that plan, launch and check it.
#pragma once

#include "tilewright/array.h"
#include "tilewright/error.h"
#include "tilewright/target.h"
#include "tilewright/type.h"
#include "tilewright/view.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright {

class Device;
class Stream;
struct Traced;

enum class Role : std::uint8_t { input, output, inout };
enum class Presence : std::uint8_t { required, optional };

/// One tensor of an operator. A shape is a comma-separated list of size names (one value each
/// throughout the operator), numbers, `_` (anything) and, first only, `...` (any further modes):
/// "T,H", "E,2,_", "...,D". An empty shape is rank 0; "*" is any shape.
struct TensorSpec {
  std::string_view name = {};
  Role role = Role::input;
  Presence presence = Presence::required;
  std::string_view shape = {};
  std::span<const Type> types = {};  ///< the types that it may have
  std::string_view may_alias = {};   ///< an output: the input that it may be exactly (in place)
  std::string_view doc = {};
};

enum class OptionType : std::uint8_t { real, integer, boolean, choice, text };

std::string_view name(Role role);        ///< "input", "output", "inout"
std::string_view name(OptionType type);  ///< "number", "integer", "boolean", "choice", "text"

/// One option. `words` are all values of a choice, and values that a number may have besides
/// numbers ("auto", "none"). A number or an integer without a default has to be given.
struct OptionSpec {
  std::string_view name = {};
  OptionType type = OptionType::real;
  std::string_view default_text = {};
  std::span<const std::string_view> words = {};
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  std::string_view doc = {};

  bool is_required() const {
    return default_text.empty() && (type == OptionType::real || type == OptionType::integer);
  }
};

struct Schema {
  std::string_view name = {};
  int version = 1;  ///< raised when the same arguments give another result; part of cache keys
  std::string_view formula = {};
  std::string_view doc = {};
  std::span<const TensorSpec> tensors = {};
  std::span<const OptionSpec> options = {};
  /// What else is refused, and what numbers at their ends come to.
  std::string_view limits = {};
};

/// Device memory that a launch needs besides its tensors. The caller zeroes it once, before the
/// first launch; each launch leaves it ready for the next one on the same stream.
struct Workspace {
  std::uint64_t address = 0;  ///< aligned to 256 bytes
  std::int64_t size_bytes = 0;
};

/// The tensors and options of one call, held against a schema. Every failure is an Error(user)
/// that names the operator, the argument, its value and what is allowed.
class Arguments {
 public:
  /// Pre: the schema outlives the arguments.
  explicit Arguments(const Schema& schema);

  const Schema& schema() const { return *schema_; }

  /// Pre: `name` is a tensor of the schema; its type is one of the schema's types.
  void set(std::string_view name, const View& view, SourceLoc at = SourceLoc::here());
  /// Reads a value as the command line spells it: "1e-6", "true", "neox", "auto".
  void set_option(std::string_view name, std::string_view text, SourceLoc at = SourceLoc::here());
  void set_option(std::string_view name, double value, SourceLoc at = SourceLoc::here());

  void set_workspace(const Workspace& workspace) { workspace_ = workspace; }
  /// Throws Error(user) if there are fewer than `needed_bytes`.
  const Workspace& workspace(std::int64_t needed_bytes, SourceLoc at = SourceLoc::here()) const;

  const View* find(std::string_view name) const;    ///< null: absent. Throws for an unknown name
  const View& tensor(std::string_view name) const;  ///< throws if absent

  /// Throws Error(user) for an option that is required and not given, as real_or_word() does.
  double real(std::string_view option) const;
  std::int64_t integer(std::string_view option) const;
  bool boolean(std::string_view option) const;
  std::string_view text(std::string_view option) const;  ///< a choice's or a text's value
  /// Nothing if the option is one of its words ("auto", "none"); text() tells which.
  std::optional<double> real_or_word(std::string_view option) const;
  std::optional<std::int64_t> integer_or_word(std::string_view option) const;

  /// The value of a size such as "T", from the first present tensor whose shape names it.
  std::int64_t size(std::string_view name) const;

  /// Checks what the schema says: required tensors (outputs only with `Outputs::required`), ranks,
  /// one value for each size name, and outputs that overlap another tensor without being equal to
  /// it.
  enum class Outputs : std::uint8_t { optional, required };
  void check(Outputs outputs, SourceLoc at = SourceLoc::here()) const;

  /// Throws Error(user) "NAME: what", for rules of the operator's own.
  [[noreturn]] void fail(std::string_view what, SourceLoc at = SourceLoc::here()) const;

 private:
  struct OptionValue {
    double number = 0;
    std::int64_t integer = 0;
    bool is_word = false;
    bool is_given = false;  ///< or has a default
    std::string text;
  };
  std::size_t tensor_index(std::string_view name, SourceLoc at) const;
  std::size_t option_index(std::string_view name, SourceLoc at) const;
  const OptionValue& option(std::string_view name, OptionType type) const;

  const Schema* schema_;
  std::vector<std::optional<View>> tensors_;  ///< one for each of the schema's
  std::vector<OptionValue> options_;          ///< one for each of the schema's
  Workspace workspace_;
};

/// Whether a call that does not name an output gets it.
enum class Making : std::uint8_t {
  by_presence,  ///< if the schema requires it
  always,       ///< these options ask for it, optional though it is
  on_demand     ///< these options do without it
};

/// An output that the caller has to provide: row-major unless the operator says otherwise.
struct OutputSpec {
  std::string_view name = {};
  Type type = Type::none;
  std::vector<std::int64_t> shape = {};
  Making making = Making::by_presence;
};
/// Whether a call that names no outputs gets this one. `spec` is its tensor.
bool is_made(const OutputSpec& output, const TensorSpec& spec);

/// |out - ref| <= relative * |ref| + of_row_max * (largest |ref| of the row) + of_max * (largest of
/// all) + absolute, a row being the last mode. All zero: equal bits (any NaN equals any NaN of a
/// float type).
struct Tolerance {
  double relative = 0;
  double of_row_max = 0;
  double of_max = 0;
  double absolute = 0;
  /// Not 0: instead, the root of sum (out - ref)^2 / sum ref^2 over all elements is at most this.
  double rmse = 0;
};

/// What a NaN in a reference asks for: a NaN, or nothing.
enum class NanRule : std::uint8_t { equal, skip };

/// The tensors of a reference computation, by name.
class HostTensors {
 public:
  const Array* find(std::string_view name) const;
  const Array& at(std::string_view name) const;  ///< throws Error(user) if absent
  void set(Array array);                         ///< under its name; replaces
  std::span<const Array> all() const { return arrays_; }

 private:
  std::vector<Array> arrays_;
};

/// One problem to measure or try: sizes, tensor types and options in one text,
/// "T=32768,H=4096,x=bf16,eps=1e-5". A tensor with several types takes the first one unless named.
struct Problem {
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::vector<std::pair<std::string, Type>> types;
  std::vector<std::pair<std::string, std::string>> options;

  std::int64_t size(std::string_view name) const;  ///< throws Error(user) if it is not given
};
Problem parse_problem(const Schema& schema, std::string_view text,
                      SourceLoc at = SourceLoc::here());

/// A kernel folder exports one: `const Operator& NAME_operator()`. Functions may be null where
/// said.
struct Operator {
  Schema schema = {};

  /// Checks the inputs and options and says what the outputs are, optional ones too, and inouts
  /// that need not be given because these arguments do not read them.
  std::vector<OutputSpec> (*outputs)(const Arguments& arguments) = nullptr;
  /// Checks everything and launches. Allocates nothing on the device and does not synchronise.
  void (*launch)(const Device& device, const Stream& stream, const Arguments& arguments) = nullptr;
  /// Bytes of Arguments::set_workspace that a launch needs; null: none. Inputs and options suffice.
  std::int64_t (*workspace_bytes)(const Arguments& arguments) = nullptr;
  /// Computes outputs and inouts in float64 (or exactly, in the output's own type) from `tensors`,
  /// which holds the inputs, and sets them there. `arguments` has types, shapes and options.
  void (*reference)(const Arguments& arguments, HostTensors& tensors) = nullptr;
  Tolerance (*tolerance)(const Arguments& arguments, std::string_view output) = nullptr;
  /// `skip`: a NaN in an output's reference marks an element that the contract leaves open. Null:
  /// `equal`.
  NanRule (*nan_rule)(const Arguments& arguments) = nullptr;
  /// Puts an expected output of a case file where the operator writes it, if files keep another
  /// order than memory; `tensors` holds the inputs. May be null.
  void (*place_expected)(const Arguments& arguments, const HostTensors& tensors,
                         Array& expected) = nullptr;
  /// Throws Error(user) for contents of inputs that are against the contract and that no launch can
  /// see; called where inputs are on the host. May be null.
  void (*check_contents)(const Arguments& arguments, std::span<const Array> inputs) = nullptr;
  /// The fewest bytes that a run has to move: each input read once, each output written once.
  std::int64_t (*bytes)(const Arguments& arguments) = nullptr;
  /// The kernels that a launch with these arguments would run on the target, in order; no device.
  std::vector<Traced> (*trace)(const Arguments& arguments, ptx::Target target) = nullptr;
  /// Overwrites generated inputs that may not be arbitrary numbers (indices, counts); may be null.
  void (*fill)(const Problem& problem, std::vector<Array>& inputs) = nullptr;
  /// The problems that `bench` measures when none is named, in parse_problem's notation.
  std::span<const std::string_view> bench_problems = {};
};

/// Operator::nan_rule of these arguments.
NanRule nan_rule(const Operator& op, const Arguments& arguments);
/// Operator::nan_rule of operators that may leave elements open whatever their arguments.
inline NanRule skip_nan(const Arguments&) { return NanRule::skip; }

/// Inputs of the problem, filled with reproducible values: normal numbers for floats, small
/// integers otherwise, then Operator::fill. "..." in a shape becomes T and the sizes that the
/// problem gives and no tensor's shape names. Optional inputs only where the problem names their
/// type.
std::vector<Array> make_inputs(const Operator& op, const Problem& problem, std::uint64_t seed);

/// The first element that misses the tolerance, and how far the worst is from its bound.
struct Comparison {
  std::int64_t compared =
      0;  ///< elements; those whose reference is NaN while NanRule::skip are not
  std::int64_t wrong = 0;
  std::int64_t first_wrong = -1;             ///< row-major index
  double out = 0, reference = 0, bound = 0;  ///< at first_wrong
  double worst_ratio = 0;                    ///< largest |out - ref| / bound, 0 where both are 0
};
/// `allowance`: what each element may be off besides; null: nothing. Throws Error(user) if shapes
/// differ.
Comparison compare(const Array& out, const Array& reference, const Tolerance& tolerance,
                   NanRule nan = NanRule::equal, const Array* allowance = nullptr);

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Problems to measure: their text, and inputs made for them.
#include "runtime/problem_shapes.h"
#include "runtime/schema_shape.h"
#include "tilewright/operator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace tilewright {
namespace {

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

double uniform(std::uint64_t& state) {
  return (static_cast<double>(next_random(state) >> 11) + 0.5) * 0x1p-53;
}

double normal(std::uint64_t& state) {
  const double radius = std::sqrt(-2 * std::log(uniform(state)));
  return radius * std::cos(2 * std::numbers::pi * uniform(state));
}

bool is_size_name(const Schema& schema, std::string_view name) {
  for (const TensorSpec& tensor : schema.tensors) {
    const ShapePattern pattern(tensor.shape);
    const std::vector<std::string_view>& modes = pattern.modes();
    const bool listed = std::find(modes.begin(), modes.end(), name) != modes.end();
    if (pattern.has_ellipsis() && name == "T") return true;  // the modes that "..." stands for
    if (listed && name != "_" && !fixed_extent(name)) return true;
  }
  return false;
}

std::string size_names(const Schema& schema) {
  std::vector<std::string_view> names;
  for (const TensorSpec& tensor : schema.tensors) {
    const ShapePattern pattern(tensor.shape);
    for (std::string_view mode : pattern.modes()) {
      const bool seen = std::find(names.begin(), names.end(), mode) != names.end();
      if (!seen && is_size_name(schema, mode)) names.push_back(mode);
    }
  }
  std::string text;
  for (std::string_view name : names)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text.empty() ? "none" : text;
}

template <typename Specs>
std::string names_of(const Specs& specs) {
  std::string text;
  for (const auto& spec : specs)
    text += (text.empty() ? "" : ", ") + std::string(spec.name);
  return text.empty() ? "none" : text;
}

template <typename Specs>
bool names(const Specs& specs, std::string_view name) {
  return std::any_of(specs.begin(), specs.end(),
                     [name](const auto& spec) { return spec.name == name; });
}

/// The types of a tensor of the schema.
std::string type_names(const Schema& schema, std::string_view tensor) {
  std::string text;
  for (const TensorSpec& spec : schema.tensors) {
    if (spec.name != tensor) continue;
    for (Type type : spec.types)
      text += (text.empty() ? "" : ", ") + std::string(name(type));
  }
  return text;
}

void add_item(const Schema& schema, std::string_view key, std::string_view value, Problem& problem,
              SourceLoc at) {
  const std::string start = std::string(schema.name) + ": '" + std::string(key) + "'";
  if (is_size_name(schema, key)) {
    const std::optional<std::int64_t> extent = fixed_extent(value);
    if (!extent || *extent < 0) {
      throw Error(ErrorKind::user,
                  start + " is '" + std::string(value) +
                      "'; it is a size and must be an integer of at least 0",
                  at);
    }
    problem.sizes.emplace_back(key, *extent);
  } else if (names(schema.tensors, key)) {
    const std::optional<Type> type = type_from_name(value);
    if (!type) {
      throw Error(ErrorKind::user,
                  start + " is '" + std::string(value) +
                      "'; it is a tensor and takes a type: " + type_names(schema, key),
                  at);
    }
    problem.types.emplace_back(key, *type);
  } else if (names(schema.options, key)) {
    problem.options.emplace_back(key, value);
  } else {
    throw Error(ErrorKind::user,
                start + " is no size, tensor or option; sizes: " + size_names(schema) +
                    "; tensors: " + names_of(schema.tensors) +
                    "; options: " + names_of(schema.options),
                at);
  }
}

/// Fills with a repeated block of random values: repeating keeps gigabytes cheap.
void fill_random(Array& array, std::uint64_t seed) {
  constexpr std::size_t kBlock = 8191;  // prime, so that rows differ from one another
  const std::int64_t count = element_count(array.shape);
  const std::size_t used =
      static_cast<std::size_t>(std::min<std::int64_t>(count, static_cast<std::int64_t>(kBlock)));
  std::vector<double> values(used);
  std::uint64_t state = seed;
  for (double& value : values) {
    value = is_float(array.type) ? normal(state) : static_cast<double>(next_random(state) % 2);
    if (array.type == Type::ue8m0) value = std::exp2(std::round(value));
    if (array.type == Type::ue4m3) value = std::fabs(value);
  }
  if (used == 0) return;
  const Array block = make_array("", array.type, {static_cast<std::int64_t>(used)}, values);
  for (std::size_t at = 0; at < array.bytes.size();) {
    // A half-filled last byte of a four-bit type is not repeated.
    const std::size_t whole = array.type == Type::e2m1 && used > 1 ? used / 2 : block.bytes.size();
    const std::size_t part = std::min(whole, array.bytes.size() - at);
    std::memcpy(array.bytes.data() + at, block.bytes.data(), part);
    at += part;
  }
}

std::optional<Type> type_of(const Problem& problem, const TensorSpec& spec) {
  for (const auto& [name, type] : problem.types) {
    if (name == spec.name) return type;
  }
  if (spec.presence == Presence::optional || spec.types.empty()) return std::nullopt;
  return spec.types.front();
}

bool names_mode(const ShapePattern& pattern, std::string_view name) {
  return std::find(pattern.modes().begin(), pattern.modes().end(), name) != pattern.modes().end();
}

/// What "..." stands for: T, and the sizes that the problem gives and no tensor's shape names.
std::vector<std::int64_t> leading_extents(const Schema& schema, const Problem& problem,
                                          const ShapePattern& pattern) {
  std::vector<std::int64_t> extents;
  if (!pattern.has_ellipsis()) return extents;
  for (const auto& [name, value] : problem.sizes) {
    const bool named = name == "T"
                           ? names_mode(pattern, name)
                           : std::any_of(schema.tensors.begin(), schema.tensors.end(),
                                         [&name = name](const TensorSpec& spec) {
                                           return names_mode(ShapePattern(spec.shape), name);
                                         });
    if (!named) extents.push_back(value);
  }
  return extents;
}

}  // namespace

std::int64_t Problem::size(std::string_view name) const {
  for (const auto& [key, value] : sizes) {
    if (key == name) return value;
  }
  throw Error(ErrorKind::user, "problem: size " + std::string(name) + " is not given; add " +
                                   std::string(name) + "=NUMBER");
}

Problem parse_problem(const Schema& schema, std::string_view text, SourceLoc at) {
  Problem problem;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw Error(ErrorKind::user,
                  std::string(schema.name) + ": '" + std::string(item) +
                      "' is not NAME=VALUE; write a problem as T=128,H=4096,x=bf16",
                  at);
    }
    add_item(schema, item.substr(0, equals), item.substr(equals + 1), problem, at);
  }
  return problem;
}

namespace {

/// Operator::fill makes some inputs in the one type that they have, and outputs follow from inputs.
void check_types(const Schema& schema, const Problem& problem, const std::vector<Array>& inputs) {
  for (const auto& [name, type] : problem.types) {
    const std::string start = std::string(schema.name) + ": '" + name + "' is " +
                              std::string(tilewright::name(type)) + " in the problem; ";
    const auto made = std::find_if(inputs.begin(), inputs.end(),
                                   [&name = name](const Array& each) { return each.name == name; });
    if (made == inputs.end()) {
      throw Error(ErrorKind::user, start + "it is an output, whose type options say");
    }
    if (made->type != type) {
      throw Error(ErrorKind::user,
                  start + "it must be " + std::string(tilewright::name(made->type)));
    }
  }
}

/// The arrays, each as `make` fills it.
template <class Make>
std::vector<Array> make_arrays(const Operator& op, const Problem& problem, Make&& make) {
  std::vector<Array> inputs;
  for (const TensorSpec& spec : op.schema.tensors) {
    const std::optional<Type> type = type_of(problem, spec);
    if (spec.role == Role::output || !type) continue;
    const ShapePattern pattern(spec.shape);
    std::vector<std::int64_t> shape = leading_extents(op.schema, problem, pattern);
    for (std::string_view mode : pattern.modes()) {
      if (mode == "_") continue;  // Operator::fill gives such tensors their shape
      const std::optional<std::int64_t> fixed = fixed_extent(mode);
      shape.push_back(fixed ? *fixed : problem.size(mode));
    }
    inputs.push_back(
        make(Array{std::string(spec.name), *type, std::move(shape), {}}, inputs.size() + 1));
  }
  if (op.fill != nullptr) op.fill(problem, inputs);
  check_types(op.schema, problem, inputs);
  return inputs;
}

}  // namespace

std::vector<Array> make_inputs(const Operator& op, const Problem& problem, std::uint64_t seed) {
  return make_arrays(op, problem, [seed](Array array, std::size_t number) {
    Array filled = make_array(std::move(array.name), array.type, std::move(array.shape));
    fill_random(filled, seed + 0x51ed2701U * number);
    return filled;
  });
}

std::vector<Array> detail::make_input_shapes(const Operator& op, const Problem& problem) {
  return make_arrays(op, problem, [](Array array, std::size_t) {
    storage_bytes(array.type, array.shape);  // throws beyond 64 bits
    return array;
  });
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Signature, formula, tensors, options, tolerance and figures of each operator as Markdown.
#include "cli/operator_page.h"

#include "cli/text.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace tilewright::cli {
namespace {

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words)
    text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

std::string types_text(const TensorSpec& spec) {
  std::vector<std::string_view> names;
  for (const Type type : spec.types)
    names.push_back(name(type));
  return joined(names);
}

std::string role_text(const TensorSpec& spec) {
  const std::string role = spec.role == Role::input    ? "in"
                           : spec.role == Role::output ? "out"
                                                       : "in, out";
  return spec.presence == Presence::optional ? role + ", optional" : role;
}

std::string range_text(const OptionSpec& spec) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const bool from = spec.least > -kInf, to = spec.most < kInf;
  if (from && to) return number_text(spec.least) + " to " + number_text(spec.most);
  if (from) return "at least " + number_text(spec.least);
  return to ? "at most " + number_text(spec.most) : "";
}

std::string values_text(const OptionSpec& spec) {
  if (spec.type == OptionType::choice) return joined(spec.words);
  if (spec.type == OptionType::boolean) return "true, false";
  if (spec.type == OptionType::text) return std::string(name(spec.type));
  std::string text(name(spec.type));
  if (const std::string range = range_text(spec); !range.empty()) text += " " + range;
  return spec.words.empty() ? text : text + ", or " + joined(spec.words);
}

/// A cell of a table: bars would end it.
std::string cell(std::string_view text) {
  std::string safe;
  for (const char c : text)
    safe += c == '|' ? std::string("\\|") : std::string(1, c);
  return " " + safe + " |";
}

std::string tensors_text(const Schema& schema) {
  std::string text = "| tensor | | shape | types | |\n|---|---|---|---|---|\n";
  for (const TensorSpec& spec : schema.tensors) {
    text += "|" + cell("`" + std::string(spec.name) + "`") + cell(role_text(spec)) +
            cell("`[" + std::string(spec.shape) + "]`") + cell(types_text(spec)) + cell(spec.doc) +
            "\n";
  }
  return text;
}

std::string options_text(const Schema& schema) {
  if (schema.options.empty()) return "";
  std::string text = "\n| option | default | values | |\n|---|---|---|---|\n";
  for (const OptionSpec& spec : schema.options) {
    text += "|" + cell("`" + std::string(spec.name) + "`") +
            cell(spec.is_required() ? "required" : spec.default_text) + cell(values_text(spec)) +
            cell(spec.doc) + "\n";
  }
  return text;
}

std::string limits_text(const Schema& schema) {
  return schema.limits.empty() ? "" : "\nLimits: " + std::string(schema.limits) + "\n";
}

/// The operator's first problem with sizes for which its inputs are quickly made.
std::string small_problem(const Operator& op, std::int64_t rows, std::int64_t most) {
  const Problem problem = parse_problem(op.schema, op.bench_problems.front());
  std::string text;
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    const auto& [size, value] = problem.sizes[i];
    text += (text.empty() ? "" : ",") + size + "=" +
            std::to_string(std::min(value, i == 0 ? rows : most));
  }
  for (const auto& [tensor, type] : problem.types)
    text += (text.empty() ? "" : ",") + tensor + "=" + std::string(name(type));
  for (const auto& [option, value] : problem.options)
    text.append(text.empty() ? "" : ",").append(option).append("=").append(value);
  return text;
}

std::string bound_text(const Tolerance& tolerance) {
  if (tolerance.rmse > 0) return "root mean square error of " + number_text(tolerance.rmse);
  std::string text;
  auto add = [&](double factor, const char* of) {
    char number[32];
    std::snprintf(number, sizeof number, "%.3g", factor);
    if (factor > 0) text += (text.empty() ? "" : " + ") + std::string(number) + of;
  };
  add(tolerance.relative, " \\|ref\\|");
  add(tolerance.of_row_max, " max \\|ref\\|");
  add(tolerance.of_max, " max of all \\|ref\\|");
  add(tolerance.absolute, "");
  return text.empty() ? "equal bits" : text;
}

/// The bound of each output for a problem, with views that no one reads.
std::string tolerances_of(const Operator& op, const std::string& text) {
  const Problem problem = parse_problem(op.schema, text);
  Arguments arguments(op.schema);
  for (const auto& [option, value] : problem.options)
    arguments.set_option(option, value);
  std::uint64_t address = 4096;
  auto place = [&](std::string_view tensor, Type type, const std::vector<std::int64_t>& shape) {
    arguments.set(tensor, make_view(address, type, shape));
    address += (static_cast<std::uint64_t>(storage_bytes(type, shape)) | 4095) + 1;
  };
  std::vector<std::string> written;
  for (const Array& input : make_inputs(op, problem, 1)) {
    place(input.name, input.type, input.shape);
    const auto spec = std::find_if(op.schema.tensors.begin(), op.schema.tensors.end(),
                                   [&](const TensorSpec& each) { return each.name == input.name; });
    if (spec->role == Role::inout) written.push_back(input.name);
  }
  for (const OutputSpec& output : op.outputs(arguments)) {
    if (arguments.find(output.name) == nullptr) {
      place(output.name, output.type, output.shape);
      written.emplace_back(output.name);
    }
  }
  std::string bounds;
  for (const std::string& output : written) {
    bounds += (bounds.empty() ? "" : "; ") + ("`" + output + "` ") +
              bound_text(op.tolerance(arguments, output));
  }
  return bounds.empty() ? "" : "Tolerance for `" + text + "`: " + bounds + ".\n";
}

std::string tolerance_text(const Operator& op) {
  constexpr std::pair<std::int64_t, std::int64_t> kCaps[] = {{8, 1024}, {64, 8192}};
  if (op.bench_problems.empty()) return "";
  for (const auto& [rows, most] : kCaps) {
    try {
      return "\n" + tolerances_of(op, small_problem(op, rows, most));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;  // else not with these sizes
    }
  }
  return "";
}

std::string section(const Operator& op) {
  const Schema& schema = op.schema;
  const std::string title(schema.name);
  std::string text = "\n## " + title + "\n\n" + std::string(schema.doc) + "\n\n```\n" +
                     signature(schema) + "\n" + std::string(schema.formula) + "\n```\n\n" +
                     tensors_text(schema) + options_text(schema) + limits_text(schema) +
                     tolerance_text(op);
  return text + "\n<!-- results: operators.json filter ^" + title +
         "\\s columns problem=problem: | µs=time_us:.2f | GB/s=bytes_per_second*1e-9:.0f | of a "
         "copy=of_ceiling:.1% -->\n<!-- end of results -->\n";
}

}  // namespace

std::string signature(const Schema& schema) {
  std::string inputs;
  std::string outputs;
  for (const TensorSpec& spec : schema.tensors) {
    std::string& list = spec.role == Role::output ? outputs : inputs;
    list += (list.empty() ? "" : ", ") + std::string(spec.name);
    if (spec.role == Role::inout) list += "*";
    if (spec.presence == Presence::optional) list += "?";
  }
  return outputs.empty() ? inputs : inputs + " -> " + outputs;
}

std::string operator_page(std::span<const Operator* const> operators) {
  std::string text =
      "# Operators\n\n"
      "Written by `tilewright list --markdown` from the schemas, figures by `scripts/docs.py`; a "
      "test "
      "compares it. In a\nsignature `?` marks tensors that may be absent and `*` those that are "
      "read "
      "and written. In shapes `...` is any modes\nand `_` any extent; every size has one value. An "
      "output's bound is against a reference in float64, `max` is the\nlargest of the row.\n\n";
  for (const Operator* op : operators) {
    const std::string title(op->schema.name);
    text.append("- [").append(title).append("](#").append(title).append("): ");
    text.append(op->schema.doc).append("\n");
  }
  for (const Operator* op : operators)
    text += section(*op);
  return text;
}

}  // namespace tilewright::cli

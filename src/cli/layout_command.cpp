// SPDX-License-Identifier: Apache-2.0
// The subcommand `layout`.
#include "cli/layout_command.h"

#include "cli/program.h"
#include "cli/text.h"
#include "tilewright/layout_picture.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tilewright::cli {
namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::user, message); }

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot open '" + path + "': " + std::strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad() || text.bad()) fail("cannot read '" + path + "'");
  return std::move(text).str();
}

void write(std::FILE* out, const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), out) != text.size()) fail("cannot write the output");
}

// A picture on a terminal is as wide as a few dozen columns; larger layouts print their value
// alone.
bool fits_terminal(const ComposedLayout& layout) {
  constexpr std::int64_t kMaxCells = 1024;
  return layout.layout.is_static() && layout.offset.is_static() && layout.rank() <= 2 &&
         size(layout).value() > 0 && size(layout).value() <= kMaxCells;
}

int run_cases(const LayoutOptions& options, std::FILE* out) {
  const LayoutCaseReport report =
      run_layout_cases(parse_layout_cases(read_file(options.cases), options.cases));
  for (const std::string& difference : report.differences) {
    write(out, difference + '\n');
  }
  write(out,
        std::to_string(report.passed) + " passed, " + std::to_string(report.failed) + " failed\n");
  return report.failed == 0 ? 0 : 1;
}

int list_functions(std::FILE* out) {
  for (const LayoutFunction& f : layout_functions()) {
    write(out, std::string(f.name) + '(' + std::string(f.parameters) +
                   "): " + std::string(f.meaning) + '\n');
  }
  return 0;
}

std::string picture_of(const LayoutAnswer& answer, const LayoutOptions& options) {
  if (answer.thread_value) return draw_svg(*answer.thread_value);
  if (!answer.layout) fail("layout: '" + answer.text + "' is no layout, so there is no picture");
  if (options.bank_bits == 0) return draw_svg(*answer.layout);
  return draw_svg(*answer.layout, {CellColor::bank, options.bank_bits});
}

std::vector<std::string> strings(const nlohmann::json& array, const std::string& where) {
  std::vector<std::string> result;
  if (!array.is_array()) fail(where + " must be an array of strings");
  for (const nlohmann::json& item : array) {
    if (!item.is_string()) fail(where + " must be an array of strings");
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::string text_field(const nlohmann::json& item, const char* key, const std::string& where) {
  const auto found = item.find(key);
  if (found == item.end() || !found->is_string()) {
    fail(where + ": '" + key + "' is missing or no string");
  }
  return found->get<std::string>();
}

}  // namespace

std::vector<LayoutCase> parse_layout_cases(std::string_view json, const std::string& file) {
  const nlohmann::json root = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_array()) fail(file + ": expected a JSON array of cases");
  std::vector<LayoutCase> cases;
  for (const nlohmann::json& item : root) {
    const std::string where = file + ": case " + std::to_string(cases.size());
    if (!item.is_object()) fail(where + " is no object");
    LayoutCase c;
    c.id = text_field(item, "id", where);
    c.op = text_field(item, "op", where);
    c.expected = text_field(item, "expected", where);
    if (!item.contains("inputs")) fail(where + ": 'inputs' is missing");
    c.inputs = strings(item["inputs"], where + ": 'inputs'");
    if (item.contains("accept")) c.accept = strings(item["accept"], where + ": 'accept'");
    cases.push_back(std::move(c));
  }
  return cases;
}

int run_layout_command(const LayoutOptions& options, std::FILE* out) {
  if (options.functions) return list_functions(out);
  if (!options.cases.empty()) return run_cases(options, out);
  if (options.expression.empty()) {
    fail("layout: give an expression such as \"(4,8):(1,4)\", or --cases FILE");
  }
  const LayoutAnswer answer = evaluate_layout_expression(options.expression);
  write(out, answer.text + '\n');
  if (!options.svg.empty()) {
    write_file(options.svg, picture_of(answer, options));
  } else if (answer.thread_value) {
    write(out, draw_text(*answer.thread_value));
  } else if (answer.layout && fits_terminal(*answer.layout)) {
    write(out, draw_text(*answer.layout));
  }
  return 0;
}

void add_layout_command(CLI::App& app, Program& program) {
  CLI::App* command = app.add_subcommand(
      "layout", "Evaluate and draw expressions of the layout algebra, or run cases of it");
  auto options = std::make_shared<LayoutOptions>();
  command->add_option("expression", options->expression,
                      "such as \"composition((6,2):(8,2), (4,3):(3,1))\"");
  command->add_option("--svg", options->svg, "Draw the result to this file");
  command->add_option("--banks", options->bank_bits,
                      "Colour the drawing by shared-memory bank, for elements of this many bits");
  command->add_option("--cases", options->cases, "Run the cases of this JSON file instead");
  command->add_flag("--functions", options->functions, "List what expressions may call instead");
  command->callback([options, &program] {
    program.exit =
        run_layout_command(*options, stdout) == 0 ? Exit::right : Exit::comparison_failed;
  });
}

}  // namespace tilewright::cli

// SPDX-License-Identifier: Apache-2.0
// The evaluator of layout expressions.
#include "layout/fail.h"
#include "layout/functions.h"
#include "layout/scanner.h"

#include <algorithm>
#include <limits>

namespace tilewright {
namespace {

std::vector<const FunctionRow*> all_rows() {
  std::vector<const FunctionRow*> rows;
  for (std::span<const FunctionRow> table : {tuple_functions(), layout_rows(), tile_functions()}) {
    for (const FunctionRow& row : table) {
      rows.push_back(&row);
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const FunctionRow* a, const FunctionRow* b) { return a->name < b->name; });
  return rows;
}

std::string known_names() {
  std::string names;
  for (const FunctionRow* row : all_rows()) {
    names += (names.empty() ? "" : ", ") + std::string(row->name);
  }
  return names;
}

struct Printer {
  std::string operator()(const IntTuple& v) const { return to_string(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const Layout& v) const { return to_string(v); }
  std::string operator()(const Tiler& v) const { return to_string(v); }
  std::string operator()(const Swizzle& v) const { return to_string(v); }
  std::string operator()(const ComposedLayout& v) const { return to_string(v); }
  std::string operator()(const OffsetLayout& v) const {
    return to_string(v.layout) + " @ " + to_string(v.offset);
  }
  std::string operator()(const LayoutTV& v) const {
    return to_string(v.tiler) + ", " + to_string(v.layout);
  }
};

// expression: (function '(' expression,... ')' | literal) ('(' coordinate ')')*
class Evaluator {
 public:
  explicit Evaluator(std::string_view text) : scanner_(text) {}

  LayoutValue run() {
    LayoutValue value = expression(0);
    scanner_.expect_end();
    return value;
  }

 private:
  static constexpr int kMaxCalls = 64;

  LayoutValue expression(int depth) {
    if (depth > kMaxCalls) {
      scanner_.fail_here("at most " + std::to_string(kMaxCalls) + " nested calls");
    }
    const std::size_t start = scanner_.position();
    const std::string_view name = scanner_.word();
    LayoutValue value;
    if (name.empty() || name == "Sw" || (name == "E" && scanner_.peek() == '<')) {
      scanner_.rewind(start);
      value = literal();
    } else {
      value = call_function(name, arguments(depth));
    }
    while (scanner_.peek() == '(')
      value = at_coordinate(value, scanner_.int_tuple());
    return value;
  }

  std::vector<LayoutValue> arguments(int depth) {
    std::vector<LayoutValue> values;
    scanner_.expect("(", "'(' and the arguments");
    if (scanner_.accept(")")) return values;
    do {
      values.push_back(expression(depth + 1));
    } while (scanner_.accept(","));
    scanner_.expect(")", "',' or ')'");
    return values;
  }

  LayoutValue literal() {
    const char next = scanner_.peek();
    if (next == '<') return scanner_.tiler();
    if (next == 'S') {
      const std::size_t start = scanner_.position();
      const Swizzle swizzle = scanner_.swizzle();
      if (scanner_.peek() != 'o') return swizzle;
      scanner_.rewind(start);
      return scanner_.composed();
    }
    IntTuple shape = scanner_.int_tuple();
    if (!scanner_.accept(":")) return shape;
    Layout layout(std::move(shape), scanner_.int_tuple());
    if (!scanner_.accept("@")) return layout;
    return OffsetLayout{std::move(layout), scanner_.int_tuple().value()};
  }

  LayoutValue at_coordinate(const LayoutValue& value, const IntTuple& arguments) {
    const Args args("a layout at a coordinate", std::span<const LayoutValue>(&value, 1));
    const Coord coord = arguments.rank() == 1 ? arguments[0] : arguments;
    if (!args.holds_composed(0)) {
      const Layout layout = args.layout(0);
      if (has_underscore(coord)) return slice(coord, layout);
      return evaluate(layout, coord);
    }
    if (has_underscore(coord)) return slice(coord, args.composed(0));
    return IntTuple(args.composed(0)(coord));
  }

  Scanner scanner_;
};

}  // namespace

void Args::refuse(std::size_t i, const char* wanted) const {
  fail(std::string(function_) + ": argument " + std::to_string(i + 1) + " is " +
       to_string(values_[i]) + "; give " + wanted);
}

IntTuple Args::tuple(std::size_t i) const {
  const auto* value = std::get_if<IntTuple>(&values_[i]);
  if (value == nullptr) refuse(i, "an integer or a tuple such as (4,(2,8))");
  return *value;
}

Int Args::integer(std::size_t i) const {
  const auto* value = std::get_if<IntTuple>(&values_[i]);
  if (value == nullptr || !unwrap(*value).is_int()) refuse(i, "an integer");
  return unwrap(*value).value();
}

int Args::number(std::size_t i) const {
  const Int value = integer(i);
  if (!value.is_static() || value.max() > std::numeric_limits<int>::max() ||
      value.min() < std::numeric_limits<int>::min()) {
    refuse(i, "a static integer of 32 bits");
  }
  return static_cast<int>(value.value());
}

Layout Args::layout(std::size_t i) const {
  if (const auto* value = std::get_if<Layout>(&values_[i])) return *value;
  if (const auto* value = std::get_if<LayoutTV>(&values_[i])) return value->layout;
  if (const auto* value = std::get_if<OffsetLayout>(&values_[i])) {
    if (value->offset.is_static(0)) return value->layout;
  }
  refuse(i, "a layout such as (4,8):(1,4)");
}

Tiler Args::tiler(std::size_t i) const {
  if (const auto* value = std::get_if<Tiler>(&values_[i])) return *value;
  if (const auto* value = std::get_if<IntTuple>(&values_[i])) return *value;
  if (!holds_layout(i)) refuse(i, "a tiler such as <4:1,_>, a layout or a shape");
  return layout(i);
}

Swizzle Args::swizzle(std::size_t i) const {
  const auto* value = std::get_if<Swizzle>(&values_[i]);
  if (value == nullptr) refuse(i, "a swizzle such as Sw<3,4,3>");
  return *value;
}

ComposedLayout Args::composed(std::size_t i) const {
  if (const auto* value = std::get_if<ComposedLayout>(&values_[i])) return *value;
  if (const auto* value = std::get_if<OffsetLayout>(&values_[i])) {
    return {Swizzle(), value->offset, value->layout};
  }
  return layout(i);
}

bool Args::holds_swizzle(std::size_t i) const {
  return std::holds_alternative<Swizzle>(values_[i]);
}

bool Args::holds_composed(std::size_t i) const {
  return std::holds_alternative<ComposedLayout>(values_[i]) ||
         std::holds_alternative<OffsetLayout>(values_[i]);
}

bool Args::holds_layout(std::size_t i) const {
  return holds_composed(i) || std::holds_alternative<Layout>(values_[i]) ||
         std::holds_alternative<LayoutTV>(values_[i]);
}

bool Args::holds_tuple(std::size_t i) const { return std::holds_alternative<IntTuple>(values_[i]); }

LayoutValue plain(ComposedLayout layout) {
  if (layout.is_plain()) return std::move(layout.layout);
  if (layout.swizzle.is_identity()) return OffsetLayout{std::move(layout.layout), layout.offset};
  return layout;
}

LayoutValue call_function(std::string_view name, std::span<const LayoutValue> values) {
  for (const FunctionRow* row : all_rows()) {
    if (row->name != name) continue;
    if (values.size() < row->min_args || values.size() > row->max_args) {
      fail(std::string(name) + ": " + std::to_string(values.size()) + " arguments; give (" +
           std::string(row->parameters) + ")");
    }
    return row->call(Args(name, values));
  }
  fail("unknown function '" + std::string(name.substr(0, 60)) + "'; known are " + known_names());
}

std::string to_string(const LayoutValue& value) { return std::visit(Printer{}, value); }

LayoutValue evaluate_text(std::string_view text) { return Evaluator(text).run(); }

LayoutAnswer evaluate_layout_expression(std::string_view text) {
  const LayoutValue value = evaluate_text(text);
  LayoutAnswer answer{to_string(value), std::nullopt, std::nullopt};
  const Args args("layout", std::span<const LayoutValue>(&value, 1));
  if (args.holds_layout(0)) answer.layout = args.composed(0);
  if (const auto* tv = std::get_if<LayoutTV>(&value)) answer.thread_value = *tv;
  return answer;
}

std::vector<LayoutFunction> layout_functions() {
  std::vector<LayoutFunction> result;
  for (const FunctionRow* row : all_rows()) {
    result.push_back({row->name, row->parameters, row->meaning});
  }
  return result;
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Runs cases with known answers against the algebra.
#include "layout/functions.h"
#include "layout/scanner.h"

#include <algorithm>

namespace tilewright {
namespace {

// Strides of extent 1 are free: they become 0.
IntTuple canonical_stride(const Shape& shape, const Stride& stride) {
  if (!shape.is_tuple()) return shape.value().is_static(1) ? IntTuple(0) : stride;
  std::vector<IntTuple> result;
  for (int i = 0; i < shape.rank(); ++i) {
    result.push_back(canonical_stride(shape[i], stride[i]));
  }
  return IntTuple::tuple(std::move(result));
}

Layout canonical(const Layout& layout) {
  return {layout.shape(), canonical_stride(layout.shape(), layout.stride())};
}

struct Canonical {
  LayoutValue operator()(const Layout& v) const { return canonical(v); }
  LayoutValue operator()(const ComposedLayout& v) const {
    return plain(v.with(canonical(v.layout)));
  }
  LayoutValue operator()(const OffsetLayout& v) const {
    return OffsetLayout{canonical(v.layout), v.offset};
  }
  template <class T>
  LayoutValue operator()(const T& v) const {
    return v;
  }
};

bool same(const LayoutValue& a, const LayoutValue& b) {
  return to_string(std::visit(Canonical{}, a)) == to_string(std::visit(Canonical{}, b));
}

// Whether two layouts agree wherever `of` has values.
bool same_inverse(const Layout& of, const LayoutValue& a, const LayoutValue& b) {
  const auto* x = std::get_if<Layout>(&a);
  const auto* y = std::get_if<Layout>(&b);
  if (x == nullptr || y == nullptr) return same(a, b);
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 22;
  const std::int64_t elements = size(of).value();
  if (elements > kMaxElements) return same(a, b);
  for (std::int64_t i = 0; i < elements; ++i) {
    const Int index = of(i);
    if (!((*x)(index) == (*y)(index))) return false;
  }
  return true;
}

// The value, or why there is none.
struct Outcome {
  bool error = false;
  LayoutValue value;
  std::string text;
};

Outcome run(const LayoutCase& c) {
  Outcome outcome;
  try {
    std::vector<LayoutValue> values;
    for (const std::string& input : c.inputs) {
      values.push_back(evaluate_text(input));
    }
    outcome.value = call_function(c.op, values);
    outcome.text = to_string(outcome.value);
  } catch (const Error& e) {
    outcome.error = true;
    outcome.text = "error: " + e.message();
  }
  return outcome;
}

bool matches(const LayoutCase& c, const Outcome& outcome, const std::string& answer) {
  if (answer == "error" || outcome.error) return outcome.error && answer == "error";
  if (answer == outcome.text) return true;  // what no expression stands for: "true"
  try {
    const LayoutValue expected = evaluate_text(answer);
    if (c.op == "left_inverse" && std::holds_alternative<Layout>(outcome.value)) {
      return same_inverse(parse_layout(c.inputs.at(0)), outcome.value, expected);
    }
    return same(outcome.value, expected);
  } catch (const Error&) {
    return false;  // the answer cannot be read: a difference
  }
}

}  // namespace

LayoutCaseReport run_layout_cases(std::span<const LayoutCase> cases) {
  LayoutCaseReport report;
  for (const LayoutCase& c : cases) {
    const Outcome outcome = run(c);
    const bool passed =
        matches(c, outcome, c.expected) ||
        std::any_of(c.accept.begin(), c.accept.end(),
                    [&](const std::string& answer) { return matches(c, outcome, answer); });
    if (passed) {
      ++report.passed;
      continue;
    }
    ++report.failed;
    std::string call = c.op + "(";
    for (const std::string& input : c.inputs) {
      call += (call.back() == '(' ? "" : ", ") + input;
    }
    report.differences.push_back(c.id + ": " + call + "): expected " + c.expected + ", got " +
                                 outcome.text);
  }
  return report;
}

}  // namespace tilewright

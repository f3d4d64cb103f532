// SPDX-License-Identifier: Apache-2.0
// The subcommand `layout`: expressions, pictures, and the file of cases checked against CuTe.
#include "cli/layout_command.h"

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <utility>

namespace tilewright::cli {
namespace {

struct Output {
  int code = 0;
  std::string text;
};

Output run(const LayoutOptions& options) {
  char* buffer = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&buffer, &size);
  Output result;
  try {
    result.code = run_layout_command(options, out);
  } catch (const Error& e) {
    result = {2, e.what()};
  }
  std::fclose(out);
  if (result.code != 2) result.text.assign(buffer, size);
  std::free(buffer);
  return result;
}

std::string source_file(const std::string& name) {
  return std::string(TILEWRIGHT_SOURCE_DIR) + "/" + name;
}

std::string text_of(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(source_file(name)).rdbuf();
  return text.str();
}

TEST(LayoutCommand, EveryCaseCheckedAgainstCutePasses) {
  const std::pair<const char*, const char*> files[] = {
      {"test/layout/layout_examples.json", "343 passed, 0 failed\n"},
      {"test/layout/cute_cases.json", "283 passed, 0 failed\n"},
  };
  for (const auto& [file, expected] : files) {
    const Output result = run({.expression = {}, .svg = {}, .cases = source_file(file)});
    EXPECT_EQ(result.text, expected);
    EXPECT_EQ(result.code, 0);
  }
}

// The words of a text that are names: in the table functions and tests.
std::set<std::string> names_in(const std::string& text) {
  std::set<std::string> names;
  std::string name;
  for (char c : text + " ") {
    const bool part = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (part) name += c;
    if (!part && !name.empty()) names.insert(std::exchange(name, ""));
  }
  return names;
}

TEST(LayoutCommand, TheCoverageTableHoldsWhatItClaims) {
  std::set<std::string> with_cases;
  for (const char* file : {"test/layout/layout_examples.json", "test/layout/cute_cases.json"}) {
    for (const LayoutCase& c : parse_layout_cases(text_of(file), file))
      with_cases.insert(c.op);
  }
  const std::set<std::string> tests = names_in(text_of("test/layout/property_test.cpp") +
                                               text_of("test/layout/tuple_property_test.cpp") +
                                               text_of("test/layout/dynamic_test.cpp"));
  const std::string page = text_of("docs/layout.md");
  std::istringstream table(page.substr(page.find("## Coverage")));
  std::set<std::string> named;
  int rows = 0;
  for (std::string row; std::getline(table, row);) {
    if (row.substr(0, 3) != "| `") continue;
    ++rows;
    named.merge(names_in(row.substr(0, row.find(" | "))));
    const std::string claims = row.substr(row.rfind(" | ", row.size() - 3));
    EXPECT_NE(claims.find("cases, property "), std::string::npos) << row;
    for (const std::string& name : names_in(claims)) {
      if (std::isupper(static_cast<unsigned char>(name[0])) == 0) continue;
      EXPECT_EQ(tests.count(name), 1U) << row << ": no test " << name;
    }
  }
  EXPECT_GE(rows, 28);
  for (const LayoutFunction& f : layout_functions()) {
    EXPECT_EQ(named.count(std::string(f.name)), 1U) << f.name << " is not in the table";
    EXPECT_EQ(with_cases.count(std::string(f.name)), 1U) << f.name << " has no cases";
  }
}

TEST(LayoutCommand, DifferencesArePrintedAndFailTheRun) {
  const std::string path = testing::TempDir() + "/cases.json";
  std::ofstream(path) << R"json([
    {"id": "a", "op": "size", "inputs": ["(4,8):(1,4)"], "expected": "32"
},
    {"id": "b", "op": "size", "inputs": ["(4,8):(1,4)"], "expected": "31"},
    {"id": "c", "op": "coalesce", "inputs": ["(1,8):(3,1)"], "expected": "(1,8):(0,1)", "accept": ["8:1"]},
    {"id": "d", "op": "complement", "inputs": ["(4,2):(1,2)", "16"], "expected": "2:8"},
    {"id": "e", "op": "left_inverse", "inputs": ["(8,6):(3,24)"], "expected": "(3,48):(48,1)"},
    {"id": "g", "op": "composition_swizzle", "inputs": ["Sw<0,3,3>", "5", "8:1"], "expected": "Sw<0,4,3> o 5 o 8:1"},
    {"id": "h", "op": "composed_layout_eval", "inputs": ["Sw<1,0,3>", "16", "(16,8):(1,16)", "(9,6)"], "expected": "120"},
    {"id": "i", "op": "congruent", "inputs": ["(1,2)", "(3,4)"], "expected": "true"},
    {"id": "j", "op": "congruent", "inputs": ["(1,2)", "3"], "expected": "true"},
    {"id": "f", "op": "filter_zeros", "inputs": ["(1,8):(3,1)"], "expected": "(1,8):(9,1)"}])json";
  const Output result = run({.expression = {}, .svg = {}, .cases = path});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(
      result.text,
      "b: size((4,8):(1,4)): expected 31, got 32\n"
      "d: complement((4,2):(1,2), 16): expected 2:8, got error: complement: (4,2):(1,2) overlaps "
      "itself or runs backwards (the mode 2:2 starts before index 4); only an injective layout "
      "with positive strides has a complement\n"
      "j: congruent((1,2), 3): expected true, got false\n"
      "7 passed, 3 failed\n");
  std::filesystem::remove(path);
}

TEST(LayoutCommand, PrintsTheValueAndItsTable) {
  const Output result = run({.expression = "composition((6,2):(8,2), (4,3):(3,1))"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.text.substr(0, 24), "((2,2),3):((24,2),8)\n((2");
  EXPECT_NE(result.text.find("3 | 26 34 42\n"), std::string::npos) << result.text;
  EXPECT_EQ(run({.expression = "size((4,8):(1,4))"}).text, "32\n");
}

TEST(LayoutCommand, WritesPictures) {
  const std::string path = testing::TempDir() + "/layout.svg";
  const Output result =
      run({.expression = "make_layout_tv((2,2):(2,1), (1,2):(1,1))", .svg = path});
  EXPECT_EQ(result.code, 0) << result.text;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find(">T3V1<"), std::string::npos);
  std::filesystem::remove(path);
}

struct Row {
  const char* name;
  LayoutOptions options;
  const char* expected;
};

TEST(LayoutCommand, BadInputIsAnError) {
  const Row rows[] = {
      {"nothing to do",
       {},
       "error: layout: give an expression such as \"(4,8):(1,4)\", or --cases FILE"},
      {"a picture of a number",
       {.expression = "size(8:1)", .svg = "/tmp/x.svg"},
       "error: layout: '8' is no layout, so there is no picture"},
      {"no such file",
       {.expression = {}, .svg = {}, .cases = "/nonexistent/cases.json"},
       "error: cannot open '/nonexistent/cases.json': No such file or directory"},
      {"an unwritable picture",
       {.expression = "8:1", .svg = "/nonexistent/x.svg"},
       "error: cannot write '/nonexistent/x.svg': No such file or directory"},
  };
  for (const Row& row : rows) {
    const Output result = run(row.options);
    EXPECT_EQ(result.code, 2) << row.name;
    EXPECT_EQ(result.text, row.expected) << row.name;
  }
}

TEST(LayoutCommand, CasesThatAreNoneAreRefused) {
  const auto message = [](const char* json) -> std::string {
    try {
      parse_layout_cases(json, "f.json");
    } catch (const Error& e) {
      return e.message();
    }
    return "no error";
  };
  EXPECT_EQ(message("{"), "f.json: expected a JSON array of cases");
  EXPECT_EQ(message("[3]"), "f.json: case 0 is no object");
  EXPECT_EQ(message(R"([{"id": 1}])"), "f.json: case 0: 'id' is missing or no string");
  EXPECT_EQ(message(R"([{"id": "a", "op": "size", "expected": "1"}])"),
            "f.json: case 0: 'inputs' is missing");
  EXPECT_EQ(message(R"([{"id": "a", "op": "size", "expected": "1", "inputs": [8]}])"),
            "f.json: case 0: 'inputs' must be an array of strings");
}

TEST(LayoutCommand, ListsItsFunctions) {
  const Output result = run({.functions = true});
  EXPECT_NE(result.text.find("zipped_divide(layout, tiler): ((tiles), (rests))\n"),
            std::string::npos);
}

}  // namespace
}  // namespace tilewright::cli

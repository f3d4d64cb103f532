// SPDX-License-Identifier: Apache-2.0
// What the parser reads the printer writes: the same text again, and the same machine code.
#include "ptx/ptxas.h"
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace tilewright::ptx {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<fs::path> corpus() {
  std::vector<fs::path> out;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(TILEWRIGHT_SOURCE_DIR) / "test/data"))
    if (entry.path().extension() == ".ptx") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(RoundTrip, PrintingWhatWasParsedIsStable) {
  for (const fs::path& path : corpus()) {
    SCOPED_TRACE(path.string());
    Module first = parse(read(path), path.filename().string());
    const std::string once = print(first);
    Module second = parse(once, "printed");
    EXPECT_EQ(once, print(second));
  }
}

TEST(RoundTrip, EveryConstructOfTheFuzzersSeedsIsRead) {
  for (const char* name : {"constructs.ptx", "empty.ptx"}) {
    const fs::path path = fs::path(TILEWRIGHT_SOURCE_DIR) / "test/fuzz/corpus/parse" / name;
    Module first = parse(read(path), name);
    const std::string once = print(first, LineInfo::on);
    Module second = parse(once, "printed");
    EXPECT_EQ(once, print(second, LineInfo::on));
    if (!test::has_ptxas()) continue;
    const test::Assembled result = test::assemble(once, to_string(first.target));
    EXPECT_TRUE(result.ok) << result.output << once;
  }
}

TEST(RoundTrip, PrintedModulesAssembleToTheSameMachineCode) {
  if (!test::has_ptxas()) GTEST_SKIP() << "no ptxas";
  for (const fs::path& path : corpus()) {
    SCOPED_TRACE(path.string());
    const std::string original = read(path);
    Module module = parse(original);
    const std::string target = to_string(module.target);
    const test::Assembled expected = test::assemble(original, target);
    // A file of a newer ISA than this ptxas reads has only the print at its lowest version to try.
    const bool too_new = expected.output.find("Unsupported .version") != std::string::npos;
    if (too_new) module.version = required_version(module);
    const test::Assembled actual = test::assemble(print(module), target);
    if (too_new) {
      EXPECT_TRUE(actual.ok) << actual.output;
      continue;
    }
    ASSERT_TRUE(expected.ok) << expected.output;
    ASSERT_TRUE(actual.ok) << actual.output;
    EXPECT_TRUE(expected.cubin == actual.cubin) << "the machine code differs";
  }
}

}  // namespace
}  // namespace tilewright::ptx

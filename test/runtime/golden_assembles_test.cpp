// SPDX-License-Identifier: Apache-2.0
// The assembler accepts every golden PTX file of the language at the target that it names.
#include "tilewright/assembler.h"
#include "tilewright/module.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace tilewright {
namespace {

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(TILEWRIGHT_SOURCE_DIR) / "test/golden/lang")) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Golden : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, Assembles) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  std::ifstream in(GetParam());
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  ptx::Module module = ptx::parse(text, GetParam().filename().string());
  ptx::Target target = module.target;
  if (target.sm < 75) target = {75, '\0'};  // the oldest that CUDA 13 assembles for
  EXPECT_FALSE(assemble(text, target).bytes.empty());
}

INSTANTIATE_TEST_SUITE_P(Lang, Golden, testing::ValuesIn(golden_files()),
                         [](const auto& row) { return row.param.stem().string(); });

}  // namespace
}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// The published list of what is not supported: every form without a meaning stands in it.
#include "tilewright/form.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

namespace tilewright::emu {
namespace {

std::string unsupported_section() {
  std::ifstream in(std::string(TILEWRIGHT_SOURCE_DIR) + "/docs/emulator.md");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::size_t at = text.find("## Not supported");
  return at == std::string::npos ? "" : text.substr(at);
}

TEST(Support, EveryFormWithoutAMeaningIsPublished) {
  const std::string section = unsupported_section();
  ASSERT_FALSE(section.empty());
  int forms_without = 0;
  for (const ptx::Form& form : ptx::forms()) {
    const std::string requires_ = std::string(form.requires_[0].targets);
    const bool later = requires_.starts_with("sm_10") || requires_.starts_with("10") ||
                       requires_.starts_with("sm_12") || requires_.starts_with("12");
    const bool without = form.effect == ptx::Effect::none;
    if (!without || later) continue;
    ++forms_without;
    EXPECT_NE(section.find("`" + std::string(form.opcode)), std::string::npos)
        << form.opcode << " " << form.modifiers << " " << requires_;
  }
  EXPECT_GT(forms_without, 0);
}

/// `opcode` in the first column of the list: what it names must not be supported, or it is stale.
TEST(Support, WhatIsPublishedHasNoMeaning) {
  const std::string section = unsupported_section();
  int named = 0;
  for (std::size_t at = section.find("\n| `"); at != std::string::npos;
       at = section.find("\n| `", at + 1)) {
    const std::size_t begin = at + 4, end = section.find('`', begin);
    const std::string opcode = section.substr(begin, end - begin);
    EXPECT_EQ(ptx::parse_opcode(opcode).row().effect, ptx::Effect::none) << opcode;
    ++named;
  }
  EXPECT_GT(named, 0);
}

}  // namespace
}  // namespace tilewright::emu

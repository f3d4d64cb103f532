// SPDX-License-Identifier: Apache-2.0
// Golden files: the text of test/golden/NAME must equal what a test produces; --update-golden
// rewrites it.
#pragma once

#include <string_view>

namespace tilewright::test {

/// Fails the running test unless the file test/golden/`name` (e.g. "lang/if_else.ptx") holds
/// exactly `text`; the failure shows the first line that differs. Under --update-golden it writes
/// the file instead.
void expect_golden(std::string_view name, std::string_view text);

/// Set by the flag --update-golden of every test program.
void set_update_golden();

}  // namespace tilewright::test

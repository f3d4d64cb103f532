// SPDX-License-Identifier: Apache-2.0
// Case files keep inputs, options and expected outputs apart.
#include "tilewright/case_file.h"

#include "io/files.h"
#include "tilewright/safetensors.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

TEST(CaseFile, GivesBackWhatWasWritten) {
  const Scratch scratch;
  const CaseFile written = {{make_array("x", Type::bf16, {2}, std::vector<double>{1, 2})},
                            {{"eps", "1e-06"}, {"style", "neox"}, {"flag", "true"}, {"n", "7"}},
                            {make_array("y", Type::f64, {2}, std::vector<double>{3, 4})}};
  write_case_file(scratch / "c.safetensors", written);
  const CaseFile read = read_case_file(scratch / "c.safetensors");
  EXPECT_EQ(read.inputs, written.inputs);
  EXPECT_EQ(read.attrs, written.attrs);
  EXPECT_EQ(read.expected, written.expected);
}

TEST(CaseFile, AnOptionThatIsNullIsAbsent) {
  const Scratch scratch;
  write_safetensors(scratch / "c.safetensors", {},
                    {{"attrs", R"({"lower_bound": null, "scale": 0.25, "on": false})"}});
  const CaseFile read = read_case_file(scratch / "c.safetensors");
  EXPECT_EQ(read.attrs,
            (std::vector<std::pair<std::string, std::string>>{{"scale", "0.25"}, {"on", "false"}}));
}

TEST(CaseFile, RefusesAttrsThatAreNoScalars) {
  const Scratch scratch;
  const auto message = [&](const std::string& attrs) {
    write_safetensors(scratch / "c.safetensors", {}, {{"attrs", attrs}});
    return short_message_of(scratch.path(), [&] { read_case_file(scratch / "c.safetensors"); });
  };
  EXPECT_EQ(message("{"), "c.safetensors: metadata entry 'attrs' is no JSON object");
  EXPECT_EQ(message("[]"), "c.safetensors: metadata entry 'attrs' is no JSON object");
  EXPECT_EQ(message(R"({"a":[1]})"), "c.safetensors: attrs: values must be scalars");
  EXPECT_EQ(message(R"({"a":{}})"),
            "c.safetensors: attrs: 'a' is no number, string, truth value or null");
  EXPECT_EQ(message("{\"a\":" + std::string(100'000, '[')),
            "c.safetensors: attrs: values must be scalars");
}

}  // namespace
}  // namespace tilewright::test

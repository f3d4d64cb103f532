// SPDX-License-Identifier: Apache-2.0
// Names of options and the list of checks as text.
#include "tilewright/emulator.h"

namespace tilewright::emu {

std::string_view name(Residency residency) {
  switch (residency) {
    case Residency::all:
      return "all";
    case Residency::estimate:
      return "estimate";
    case Residency::one:
      return "one";
  }
  return "";
}

std::string_view name(Delivery delivery) {
  switch (delivery) {
    case Delivery::late:
      return "late";
    case Delivery::eager:
      return "eager";
    case Delivery::random:
      return "random";
  }
  return "";
}

std::string_view name(Divergence divergence) {
  switch (divergence) {
    case Divergence::converge:
      return "converge";
    case Divergence::maximal:
      return "maximal";
    case Divergence::random:
      return "random";
  }
  return "";
}

Checks parse_checks(std::string_view text) {
  if (text == "none") return Checks::none();
  Checks checks = Checks::none();
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (word == "all") {
      checks.bits |= Checks::all().bits;
      continue;
    }
    const std::optional<Kind> kind = kind_from_name(word);
    if (!kind) {
      std::string known;
      for (int i = 0; i < kKinds; ++i)
        known += ", " + std::string(name(static_cast<Kind>(i)));
      throw Error(ErrorKind::user,
                  "unknown check '" + std::string(word) + "'; use all, none" + known);
    }
    checks.bits |= 1U << static_cast<int>(*kind);
  }
  return checks;
}

}  // namespace tilewright::emu

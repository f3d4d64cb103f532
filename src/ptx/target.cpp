// SPDX-License-Identifier: Apache-2.0
// Target names, and which targets and versions satisfy a requirement.
#include "tilewright/target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace tilewright::ptx {
namespace {

struct Known {
  int sm;
  bool suffix_a, suffix_f;
  Version version;    ///< of the plain name
  Version version_a;  ///< of the `a` name
  Version version_f;  ///< of the `f` name
};
// PTX ISA, "Release Notes" and ".target"; families since ISA 8.8.
constexpr std::array kKnown = {
    Known{50, false, false, {4, 0}, {}, {}},        Known{52, false, false, {4, 1}, {}, {}},
    Known{53, false, false, {4, 2}, {}, {}},        Known{60, false, false, {5, 0}, {}, {}},
    Known{61, false, false, {5, 0}, {}, {}},        Known{62, false, false, {5, 0}, {}, {}},
    Known{70, false, false, {6, 0}, {}, {}},        Known{72, false, false, {6, 1}, {}, {}},
    Known{75, false, false, {6, 3}, {}, {}},        Known{80, false, false, {7, 0}, {}, {}},
    Known{86, false, false, {7, 1}, {}, {}},        Known{87, false, false, {7, 4}, {}, {}},
    Known{88, false, false, {9, 0}, {}, {}},        Known{89, false, false, {7, 8}, {}, {}},
    Known{90, true, false, {7, 8}, {8, 0}, {}},     Known{100, true, true, {8, 6}, {8, 6}, {8, 8}},
    Known{101, true, true, {8, 6}, {8, 6}, {8, 8}}, Known{103, true, true, {8, 8}, {8, 8}, {8, 8}},
    Known{110, true, true, {9, 0}, {9, 0}, {9, 0}}, Known{120, true, true, {8, 7}, {8, 7}, {8, 8}},
    Known{121, true, true, {8, 8}, {8, 8}, {8, 8}},
};

const Known* find(Target target) {
  for (const Known& k : kKnown)
    if (k.sm == target.sm && (target.suffix != 'a' || k.suffix_a) &&
        (target.suffix != 'f' || k.suffix_f))
      return &k;
  return nullptr;
}

/// sm_100, sm_103 are one family; sm_101 and its later name sm_110 another; sm_120, sm_121 a third.
int family(int sm) { return sm == 101 ? 11 : sm / 10; }

std::string known_targets() {
  std::string out;
  for (const Known& k : kKnown) {
    out += (out.empty() ? "sm_" : ", sm_") + std::to_string(k.sm);
    if (k.suffix_a) out += "[a]";
    if (k.suffix_f) out.replace(out.size() - 1, 1, "|f]");
  }
  return out;
}

std::optional<Target> read_target(std::string_view text) {
  if (text.starts_with("sm_")) text.remove_prefix(3);
  Target target;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), target.sm);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.size() > 1 || (!text.empty() && text != "a" && text != "f")) return std::nullopt;
  if (!text.empty()) target.suffix = text.front();
  return target;
}

/// Does `target` satisfy one entry: "sm_80+" (that or newer), "90a" (exactly), "100f" (its family,
/// from that member on)?
bool satisfies_entry(Target target, std::string_view entry) {
  const bool or_newer = entry.ends_with('+');
  if (or_newer) entry.remove_suffix(1);
  const std::optional<Target> needed = read_target(entry);
  if (!needed) return false;
  if (or_newer) return target.sm >= needed->sm;
  if (needed->suffix == 'f')
    return target.suffix != '\0' && family(target.sm) == family(needed->sm) &&
           target.sm >= needed->sm;
  return target == *needed;
}

}  // namespace

std::string to_string(Version version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

std::string to_string(Target target) {
  std::string out = "sm_" + std::to_string(target.sm);
  if (target.suffix != '\0') out += target.suffix;
  return out;
}

Target parse_target(std::string_view text, SourceLoc at) {
  const std::optional<Target> target = text.starts_with("sm_") ? read_target(text) : std::nullopt;
  if (!target || find(*target) == nullptr)
    throw Error(
        ErrorKind::user,
        "unknown target '" + std::string(text.substr(0, 64)) + "'; known: " + known_targets(), at);
  return *target;
}

bool satisfies(Target target, std::string_view targets) {
  while (!targets.empty()) {
    const std::size_t comma = std::min(targets.find(','), targets.size());
    if (satisfies_entry(target, targets.substr(0, comma))) return true;
    targets.remove_prefix(std::min(comma + 1, targets.size()));
  }
  return false;
}

Version required_version(Target target) {
  const Known* known = find(target);
  if (known == nullptr) return {1, 0};
  if (target.suffix == 'a') return known->version_a;
  return target.suffix == 'f' ? known->version_f : known->version;
}

}  // namespace tilewright::ptx

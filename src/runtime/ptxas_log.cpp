// SPDX-License-Identifier: Apache-2.0
// Reads the assembler's log line by line.
#include "runtime/ptxas_log.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace tilewright::detail {
namespace {

/// Calls `visit` with each line of the text, without its end.
template <typename Visit>
void for_lines(std::string_view text, Visit visit) {
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::optional<int> number_at(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

/// The number that stands right before `word`: 24 in "24 bytes spill stores" for " bytes spill st".
int number_before(std::string_view line, std::string_view word) {
  std::size_t at = line.find(word);
  if (at == std::string_view::npos) return 0;
  std::size_t from = at;
  while (from > 0 && line[from - 1] >= '0' && line[from - 1] <= '9')
    --from;
  return number_at(line.substr(from, at - from)).value_or(0);
}

std::string_view quoted_after(std::string_view line, std::string_view word) {
  std::size_t at = line.find(word);
  if (at == std::string_view::npos) return {};
  std::size_t from = line.find('\'', at);
  if (from == std::string_view::npos) return {};
  std::size_t end = line.find('\'', from + 1);
  return end == std::string_view::npos ? std::string_view() : line.substr(from + 1, end - from - 1);
}

/// 7510 of "ptxas info : (C7510) Potential Performance Loss: ...".
std::optional<int> advisory_number(std::string_view line) {
  std::size_t at = line.find("(C75");
  if (at == std::string_view::npos) return std::nullopt;
  return number_at(line.substr(at + 2));
}

}  // namespace

std::vector<EntryResources> parse_resources(std::string_view log) {
  std::vector<EntryResources> entries;
  for_lines(log, [&](std::string_view line) {
    std::string_view entry = quoted_after(line, "Compiling entry function");
    if (!entry.empty()) {
      entries.emplace_back().entry = entry;
      return;
    }
    if (entries.empty()) return;
    EntryResources& last = entries.back();
    if (line.find("bytes stack frame") != std::string_view::npos) {
      last.stack_bytes = number_before(line, " bytes stack frame");
      last.spill_store_bytes = number_before(line, " bytes spill stores");
      last.spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (line.find("Used ") != std::string_view::npos) {
      last.registers = number_before(line, " registers");
      last.barriers = number_before(line, " barriers");
      last.static_smem_bytes = number_before(line, " bytes smem");
      last.constant_bytes = number_before(line, " bytes cmem[0]");
    }
  });
  return entries;
}

void refuse_advisories(std::string_view log, const std::vector<int>& allowed, SourceLoc at) {
  std::string refused;
  for_lines(log, [&](std::string_view line) {
    std::optional<int> number = advisory_number(line);
    if (!number || std::find(allowed.begin(), allowed.end(), *number) != allowed.end()) return;
    std::string_view text = line.substr(line.find("(C75") + 1);
    text.remove_prefix(std::min(text.find(") ") + 2, text.size()));
    refused += (refused.empty() ? "C" : "; C") + std::to_string(*number) + ": " + std::string(text);
  });
  if (refused.empty()) return;
  throw Error(ErrorKind::user,
              "assemble: the assembler gave up on what was asked: " + refused +
                  "; change the kernel, or allow the number in AssembleOptions",
              at);
}

}  // namespace tilewright::detail

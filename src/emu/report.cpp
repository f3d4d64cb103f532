// SPDX-License-Identifier: Apache-2.0
// Builds findings from the running instruction, and prints them.
#include "emu/report.h"

#include "emu/grid.h"

#include <algorithm>

namespace tilewright::emu::detail {

Diagnostic* Reporter::add(Kind kind, Severity severity, std::uint32_t pc, int limit,
                          std::uint32_t other_pc, bool too_early) {
  const std::uint64_t key = std::uint64_t{pc} << 8 | static_cast<std::uint64_t>(kind) << 2 |
                            static_cast<std::uint64_t>(severity);
  auto [it, fresh] = index_.try_emplace(key, findings_.size());
  if (!fresh) {
    if (it->second < findings_.size()) ++findings_[it->second].count;
    return nullptr;
  }
  if (findings_.size() >= static_cast<std::size_t>(limit)) {
    it->second = ~std::size_t{0};
    return nullptr;
  }
  findings_.emplace_back();
  findings_.back().kind = kind;
  findings_.back().severity = severity;
  pcs_.push_back({pc, other_pc, too_early});
  return &findings_.back();
}

std::vector<Diagnostic> Reporter::take() {
  auto races_at = [&](std::uint32_t pc) {
    for (std::size_t i = 0; i < findings_.size(); ++i) {
      const Kind kind = findings_[i].kind;
      const bool race =
          kind == Kind::race || kind == Kind::unordered || kind == Kind::async_in_flight;
      if (race && (pcs_[i].own == pc || pcs_[i].other == pc)) return true;
    }
    return false;
  };
  // What leaves lanes of a warp and other threads without an order is a race: it comes first, since
  // bar.warp.sync would not mend it.
  auto part_of_race = [&](const Diagnostic& d) {
    return d.kind == Kind::unordered &&
           std::any_of(findings_.begin(), findings_.end(), [&](const Diagnostic& race) {
             return race.kind == Kind::race && race.severity <= d.severity;
           });
  };
  std::vector<std::size_t> order, last;
  for (std::size_t i = 0; i < findings_.size(); ++i) {
    if (pcs_[i].too_early && races_at(pcs_[i].own)) continue;
    (part_of_race(findings_[i]) ? last : order).push_back(i);
  }
  order.insert(order.end(), last.begin(), last.end());
  std::vector<Diagnostic> out;
  for (const std::size_t i : order)
    out.push_back(std::move(findings_[i]));
  return out;
}

Place make_place(const Grid& grid, std::uint32_t pc, std::uint64_t block, std::uint32_t thread) {
  Place place;
  const Code& code = *grid.code;
  if (pc < code.origins.size()) {
    const Origin& origin = code.origins[pc];
    place.ptx_line = origin.line;
    place.instruction = std::string(origin.text);
    ptx::SiteId site = origin.site;
    bool first = true;
    while (site != 0 && site < code.module.sites.size()) {
      const ptx::Site& s = code.module.sites[site];
      SourceLine line{s.file < code.module.files.size() ? code.module.files[s.file] : "", s.line};
      if (first) {
        place.source = line;
      } else if (place.inlined_at.size() < 64) {
        place.inlined_at.push_back(line);
      }
      first = false;
      if (s.parent >= site) break;  // parents come first: no cycles from hostile text
      site = s.parent;
    }
  }
  place.block = grid.block_index(block);
  const Dim3 b = grid.launch.block;
  place.thread = {thread % b.x, thread / b.x % b.y, thread / b.x / b.y};
  return place;
}

std::string to_string(Dim3 dim) {
  return "(" + std::to_string(dim.x) + "," + std::to_string(dim.y) + "," + std::to_string(dim.z) +
         ")";
}

std::string hex(std::uint64_t value) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

std::string thread_name(const Place& place) {
  const std::string who =
      "thread " + to_string(place.thread) + " of block " + to_string(place.block);
  return place.agent.empty() ? who : place.agent + " of " + who;
}

void report(Exec& x, Finding finding) {
  Grid& grid = *x.grid;
  Diagnostic* d =
      grid.reporter.add(finding.kind, finding.severity, x.pc, grid.options.limits.findings,
                        finding.other_pc, finding.too_early);
  if (d == nullptr) return;
  d->entry = grid.entry->name;
  d->place = make_place(grid, x.pc, x.block->linear, x.warp->thread(finding.lane));
  d->message = std::move(finding.message);
  d->range = std::move(finding.range);
  d->other = std::move(finding.other);
}

}  // namespace tilewright::emu::detail

namespace tilewright::emu {

namespace {
constexpr std::string_view kNames[kKinds] = {"out_of_bounds",
                                             "misaligned",
                                             "use_after_free",
                                             "uninitialized_read",
                                             "race",
                                             "unordered",
                                             "barrier_divergence",
                                             "barrier_mismatch",
                                             "deadlock",
                                             "async_in_flight",
                                             "exit_in_flight",
                                             "proxy_fence",
                                             "mbarrier_misuse",
                                             "shuffle_mask",
                                             "illegal_instruction",
                                             "limit",
                                             "overtaken_read"};

std::string location(const Place& place) {
  std::string text;
  if (!place.source.file.empty()) {
    const auto slash = place.source.file.find_last_of('/');
    text = place.source.file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" +
           std::to_string(place.source.line) + ": ";
  } else if (place.ptx_line != 0) {
    text = "ptx:" + std::to_string(place.ptx_line) + ": ";
  }
  return text;
}
}  // namespace

std::string_view name(Kind kind) { return kNames[static_cast<int>(kind)]; }

std::optional<Kind> kind_from_name(std::string_view text) {
  for (int i = 0; i < kKinds; ++i) {
    if (kNames[i] == text) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::undefined:
      return "undefined";
    case Severity::advice:
      return "advice";
  }
  return "";
}

std::string to_string(const Diagnostic& d) {
  std::string text =
      location(d.place) + std::string(name(d.severity)) + ": " + std::string(name(d.kind)) + ": ";
  if (!d.place.instruction.empty()) {
    text += d.place.instruction + ": " + detail::thread_name(d.place) + " ";
  }
  text += d.message;
  if (d.range && !d.range->object.empty()) text += " (" + d.range->object + ")";
  if (d.count > 1) text += " [" + std::to_string(d.count) + " times]";
  for (const SourceLine& line : d.place.inlined_at) {
    text += "\n  inlined at " + line.file + ":" + std::to_string(line.line);
  }
  if (d.place.ptx_line != 0 && !d.place.source.file.empty()) {
    text += "\n  PTX line " + std::to_string(d.place.ptx_line);
  }
  if (d.other) {
    text += "\n  other: " + location(*d.other) + d.other->instruction + " by " +
            detail::thread_name(*d.other);
  }
  return text;
}

}  // namespace tilewright::emu

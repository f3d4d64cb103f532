// SPDX-License-Identifier: Apache-2.0
// Printing the emulator's findings and counters.
#include "cli/findings.h"

#include "cli/text.h"

#include <algorithm>

namespace tilewright::cli {
namespace {

Json json_of(const emu::Dim3& at) { return Json::array({at.x, at.y, at.z}); }

Json json_of(const emu::SourceLine& line) { return {{"file", line.file}, {"line", line.line}}; }

Json json_of(const emu::Place& place) {
  Json json = {{"ptx_line", place.ptx_line},
               {"instruction", place.instruction},
               {"block", json_of(place.block)},
               {"thread", json_of(place.thread)}};
  if (!place.source.file.empty()) json["source"] = json_of(place.source);
  for (const emu::SourceLine& line : place.inlined_at) {
    json["inlined_at"].push_back(json_of(line));
  }
  if (!place.agent.empty()) json["agent"] = place.agent;
  return json;
}

std::string per_ideal(std::uint64_t count, std::uint64_t ideal) {
  if (ideal == 0) return count == 0 ? "" : grouped(count);
  return grouped(count) + " / " + grouped(ideal);
}

}  // namespace

Exit exit_of(const std::vector<emu::Diagnostic>& findings) {
  const bool bad = std::any_of(findings.begin(), findings.end(), [](const emu::Diagnostic& each) {
    return each.severity != emu::Severity::advice;
  });
  return bad ? Exit::findings : Exit::right;
}

std::string text_of(const std::vector<emu::Diagnostic>& findings) {
  std::string text;
  for (const emu::Diagnostic& finding : findings)
    text += emu::to_string(finding) + "\n";
  return text;
}

Json json_of(const emu::Diagnostic& finding) {
  Json json = {{"kind", name(finding.kind)},      {"severity", name(finding.severity)},
               {"message", finding.message},      {"entry", finding.entry},
               {"place", json_of(finding.place)}, {"count", finding.count}};
  if (finding.range) {
    json["range"] = {{"space", finding.range->space},
                     {"address", finding.range->address},
                     {"bytes", finding.range->bytes},
                     {"object", finding.range->object}};
  }
  if (finding.other) json["other"] = json_of(*finding.other);
  return json;
}

Json json_of(const std::vector<emu::Diagnostic>& findings) {
  Json json = Json::array();
  for (const emu::Diagnostic& finding : findings)
    json.push_back(json_of(finding));
  return json;
}

std::string totals_text(const emu::Counters& counters, std::uint64_t steps) {
  std::string text = grouped(steps) + " warp instructions";
  if (counters.warp_instructions == 0) return text;
  const auto add = [&text](std::uint64_t bytes, const char* what) {
    if (bytes > 0) text += ", " + bytes_text(static_cast<std::int64_t>(bytes)) + " " + what;
  };
  add(counters.global_read_bytes, "read from global memory");
  add(counters.global_written_bytes, "written to it");
  add(counters.shared_read_bytes, "read from shared memory");
  add(counters.shared_written_bytes, "written to it");
  add(counters.local_bytes, "of local memory");
  add(counters.async_bytes, "copied asynchronously");
  if (counters.atomics > 0) text += ", " + grouped(counters.atomics) + " atomics";
  if (counters.tensor_ops > 0) text += ", " + grouped(counters.tensor_ops) + " tensor operations";
  return text;
}

std::string counters_text(const emu::Counters& counters) {
  Columns columns;
  columns.add({"PTX line", "instruction", "warps", "divergent", "threads", "sectors / ideal",
               "wavefronts / ideal", "source"});
  for (const emu::InstrCount& each : counters.instructions) {
    const std::string source =
        each.source.file.empty() ? "" : each.source.file + ":" + std::to_string(each.source.line);
    columns.add({std::to_string(each.ptx_line), each.instruction, grouped(each.executions),
                 grouped(each.divergent), grouped(each.lanes),
                 per_ideal(each.sectors, each.ideal_sectors),
                 per_ideal(each.wavefronts, each.ideal_wavefronts), source});
  }
  return columns.text();
}

Json json_of(const emu::Counters& counters) {
  Json json = {{"warp_instructions", counters.warp_instructions},
               {"thread_instructions", counters.thread_instructions},
               {"global_read_bytes", counters.global_read_bytes},
               {"global_written_bytes", counters.global_written_bytes},
               {"shared_read_bytes", counters.shared_read_bytes},
               {"shared_written_bytes", counters.shared_written_bytes},
               {"local_bytes", counters.local_bytes},
               {"async_bytes", counters.async_bytes},
               {"atomics", counters.atomics},
               {"tensor_ops", counters.tensor_ops},
               {"instructions", Json::array()}};
  for (const emu::InstrCount& each : counters.instructions) {
    Json row = {{"ptx_line", each.ptx_line},
                {"instruction", each.instruction},
                {"executions", each.executions},
                {"divergent", each.divergent},
                {"lanes", each.lanes},
                {"sectors", each.sectors},
                {"ideal_sectors", each.ideal_sectors},
                {"wavefronts", each.wavefronts},
                {"ideal_wavefronts", each.ideal_wavefronts}};
    if (!each.source.file.empty()) row["source"] = json_of(each.source);
    json["instructions"].push_back(std::move(row));
  }
  return json;
}

}  // namespace tilewright::cli

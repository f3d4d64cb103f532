// SPDX-License-Identifier: Apache-2.0
// Lines of problems that are alike.
#include "cli/bandwidth_plot.h"

#include "cli/json.h"
#include "tilewright/error.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>

namespace tilewright::cli {
namespace {

/// "T=8,H=64" as T, 8 and "H=64"; nothing if it does not begin with a number of something.
struct FirstSize {
  std::string name;
  double value = 0;
  std::string rest;
};
std::optional<FirstSize> first_size(const std::string& problem) {
  const std::size_t equals = problem.find('='), comma = std::min(problem.find(','), problem.size());
  if (equals == std::string::npos || equals > comma) return std::nullopt;
  std::int64_t value = 0;
  const char* end = problem.data() + comma;
  const auto [read, code] = std::from_chars(problem.data() + equals + 1, end, value);
  if (code != std::errc() || read != end || value < 1) return std::nullopt;
  const std::size_t rest = std::min(comma + 1, problem.size());
  return FirstSize{problem.substr(0, equals), static_cast<double>(value), problem.substr(rest)};
}

/// "rms_norm T=8,H=64": the operator in front.
std::optional<std::pair<std::string, FirstSize>> named_size(const std::string& name) {
  const std::size_t space = name.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const std::optional<FirstSize> size = first_size(name.substr(space + 1));
  if (!size) return std::nullopt;
  return std::pair(name.substr(0, space) + " " + size->rest, *size);
}

void add_peers(const std::vector<PeerRow>& peers, Plot& plot) {
  const std::size_t measured = plot.lines.size();
  for (std::size_t i = 0; i < measured; i += 2) {
    Line line{"best peer", Stroke::dotted, plot.lines[i].color};
    for (const PeerRow& peer : peers) {
      const auto named = named_size(peer.name);
      if (named && named->first == plot.lines[i].name && named->second.name == plot.x_title) {
        line.points.emplace_back(named->second.value,
                                 static_cast<double>(peer.bytes) * 1e-3 / peer.us);
      }
    }
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
}

}  // namespace

std::vector<PeerRow> read_peers(const std::string& path) {
  std::vector<PeerRow> peers;
  try {
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
      throw Error(ErrorKind::user, path + ": cannot be read; name a file of bench/peers");
    const Json file = Json::parse(stream);
    for (const Json& row : file.at("benchmarks")) {
      if (!row.contains("peer_us") || !row.contains("bytes")) continue;
      PeerRow peer{row.at("name"), row.at("peer_us"), row.at("bytes")};
      if (peer.us > 0 && peer.bytes > 0) peers.push_back(std::move(peer));
    }
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::user, path + ": is no file of bench/peers: " + error.what());
  }
  if (peers.empty()) {
    throw Error(ErrorKind::user,
                path + ": has no rows with peer_us and bytes; bench/peers writes such");
  }
  return peers;
}

Plot bandwidth_plot(const std::vector<BenchRow>& rows, const std::vector<PeerRow>& peers,
                    const std::string& device) {
  Plot plot{.title = device, .x_title = "", .y_title = "GB/s", .lines = {}};
  std::map<std::string, std::size_t> places;
  for (const BenchRow& row : rows) {
    const std::optional<FirstSize> size = first_size(row.problem);
    const Measurement& m = row.measurement;
    if (!size || m.bytes == 0 || m.ceiling.median_us <= 0 || m.time.median_us <= 0) continue;
    if (plot.x_title.empty()) plot.x_title = size->name;
    const std::string name = row.op + " " + size->rest;
    const auto [place, fresh] = places.try_emplace(name, plot.lines.size());
    if (fresh) {
      const int color = static_cast<int>(plot.lines.size() / 2);
      plot.lines.push_back({name, Stroke::solid, color});
      plot.lines.push_back({"copy of as many bytes", Stroke::dashed, color});
    }
    const double kilobytes = static_cast<double>(m.bytes) * 1e-3;  // a microsecond's are GB/s
    plot.lines[place->second].points.emplace_back(size->value, kilobytes / m.time.median_us);
    plot.lines[place->second + 1].points.emplace_back(size->value, kilobytes / m.ceiling.median_us);
  }
  if (plot.lines.empty())
    throw Error(ErrorKind::user, "bench: --svg draws problems that begin with a size, such as T=8");
  add_peers(peers, plot);
  for (Line& line : plot.lines)
    std::sort(line.points.begin(), line.points.end());
  return plot;
}

}  // namespace tilewright::cli

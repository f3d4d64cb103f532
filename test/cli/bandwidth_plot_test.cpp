// SPDX-License-Identifier: Apache-2.0
// The plot of `tilewright bench --svg`.
#include "cli/bandwidth_plot.h"

#include <gtest/gtest.h>

namespace tilewright::cli {
namespace {

BenchRow row(const std::string& op, const std::string& problem, double us, double ceiling_us) {
  BenchRow row{op, problem, {}};
  row.measurement.bytes = 1'000'000;
  row.measurement.time.median_us = us;
  row.measurement.ceiling.median_us = ceiling_us;
  return row;
}

TEST(BandwidthPlot, DrawsALineForProblemsThatDifferInTheirFirstSize) {
  const Plot plot =
      bandwidth_plot({row("rms_norm", "T=64,H=8", 4, 2), row("rms_norm", "T=1,H=8", 2, 1),
                      row("rms_norm", "T=1,H=16", 2, 1), row("rope_table", "theta=1e6", 1, 1)},
                     {}, "some GPU");
  ASSERT_EQ(plot.lines.size(), 4u);
  EXPECT_EQ(plot.x_title, "T");
  EXPECT_EQ(plot.lines[0].name, "rms_norm H=8");
  using Points = std::vector<std::pair<double, double>>;
  EXPECT_EQ(plot.lines[0].points, (Points{{1, 500}, {64, 250}}));
  EXPECT_EQ(plot.lines[1].points, (Points{{1, 1000}, {64, 500}})) << "the ceiling";
  EXPECT_EQ(plot.lines[1].stroke, Stroke::dashed);
  EXPECT_NE(plot.lines[0].color, plot.lines[2].color);
}

TEST(BandwidthPlot, RefusesProblemsWithoutSizes) {
  try {
    bandwidth_plot({row("rope_table", "theta=1e6", 1, 1)}, {}, "some GPU");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "bench: --svg draws problems that begin with a size, such as T=8");
  }
}

TEST(BandwidthPlot, DrawsTheBestPeersOfItsProblems) {
  const Plot plot = bandwidth_plot({row("rms_norm", "T=64,H=8", 4, 2)},
                                   {{"rms_norm T=64,H=8", 5, 1'000'000},
                                    {"rms_norm T=1,H=8", 2, 100'000},
                                    {"rms_norm T=64,H=16", 1, 1'000'000},
                                    {"layer_norm T=64,H=8", 1, 1'000'000}},
                                   "some GPU");
  ASSERT_EQ(plot.lines.size(), 3u);
  EXPECT_EQ(plot.lines[2].name, "best peer");
  EXPECT_EQ(plot.lines[2].stroke, Stroke::dotted);
  EXPECT_EQ(plot.lines[2].color, plot.lines[0].color);
  using Points = std::vector<std::pair<double, double>>;
  EXPECT_EQ(plot.lines[2].points, (Points{{1, 50}, {64, 200}}));
}

TEST(BandwidthPlot, ReadsTheFilesOfPeers) {
  const std::string results = std::string(TILEWRIGHT_SOURCE_DIR) + "/bench/results/";
  const std::vector<PeerRow> peers = read_peers(results + "norms_peers.json");
  EXPECT_GT(peers.size(), 20u);
  for (const PeerRow& peer : peers) {
    EXPECT_GT(peer.us, 0);
    EXPECT_GT(peer.bytes, 0);
  }
  const auto text = [](const std::string& path) {
    try {
      read_peers(path);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("read");
  };
  EXPECT_EQ(text("none.json"), "none.json: cannot be read; name a file of bench/peers");
  EXPECT_EQ(
      text(results + "operators.json"),
      results + "operators.json: has no rows with peer_us and bytes; bench/peers writes such");
  EXPECT_EQ(text(TILEWRIGHT_SOURCE_DIR "/README.md")
                .rfind(TILEWRIGHT_SOURCE_DIR "/README.md: is no file of bench/peers: ", 0),
            0U);
}

/// One line of two points: the axes are 1 to 4 and 0 to 400, the plane 580 by 330 pixels from (70,
/// 40).
TEST(Plot, PlacesPointsBetweenItsAxes) {
  const std::string svg =
      draw_plot({"a < b", "T", "GB/s", {{"line", Stroke::solid, 0, {{1, 0}, {4, 400}}}}});
  EXPECT_NE(svg.find("points=\"70.0,370.0 650.0,40.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find(">a &lt; b</text>"), std::string::npos);
  EXPECT_NE(svg.find(">400</text>"), std::string::npos);
}

TEST(Plot, DrawsASinglePoint) {
  const std::string svg = draw_plot({"", "T", "", {{"line", Stroke::solid, 0, {{8, 3}}}}});
  EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::cli

// SPDX-License-Identifier: Apache-2.0
// Measures kda_conv_verify on a GPU: 96 shapes beside Triton's best and the ceilings of the same
// run, and many repeats that must give the same bits.
#include "bench/kda/shapes.h"
#include "tune/repeats.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <future>
#include <map>
#include <sstream>

namespace tw = tilewright;

namespace {

using namespace tw::bench;  // NOLINT(google-build-using-namespace): its own header

constexpr const char* kUsage =
    "usage: kda_verify [--device cuda:N] [--mode shapes|repeats] [--repeats N]\n"
    "                  [--peer CSV] [--commit TEXT] [--json FILE]\n";

struct Options {
  std::string device = "cuda:0", mode = "shapes", peer, commit = "unknown", json;
  int repeats = 100000;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        device_(tw::Device::open(options.device)),
        stream_(device_),
        pool_(device_) {}

  void run() {
    if (options_.mode == "shapes") shapes();
    if (options_.mode == "repeats") repeats();
  }

 private:
  struct Row {
    std::string name;
    double us = 0;
    std::vector<std::pair<std::string, double>> counters = {};
    std::string tiling = {};
  };

  // ---- Ceilings ----

  /// One array read, `writes` arrays written, 16 bytes a thread: TB/s.
  double stream_ceiling(int writes) {
    constexpr std::int64_t kRows = 1 << 18, kColumns = 1024;  // 1 GiB of f32
    pool_.clear();
    std::vector<tw::View> views;
    views.reserve(5);
    for (int i = 0; i < 1 + writes; ++i)
      views.push_back(pool_.take(tw::f32, {kRows, kColumns}));
    auto body = [&](const tw::Tensor& in, const tw::Tensor& a, const tw::Tensor& b,
                    const tw::Tensor& c, const tw::Tensor& d) {
      tw::Value row = tw::block_idx().x, column = tw::thread_idx().x * 4;
      tw::Fragment x = tw::load(in(row, column), 4);
      for (const tw::Tensor* to : {&a, &b, &c, &d})
        tw::store((*to)(row, column), x);
    };
    tw::TensorArg arg = tw::tensor_arg(views[0]);
    tw::Kernel kernel = tw::compile(device_, tw::trace({.name = "one_read_four_writes",
                                                        .target = device_.target(),
                                                        .block = {256, 1, 1}},
                                                       body, arg, arg, arg, arg, arg));
    tw::Parameters parameters;
    for (int i = 0; i < 5; ++i)
      tw::pack(parameters, arg, views[static_cast<std::size_t>(std::min(i, writes))]);
    tw::LaunchConfig config;
    config.grid.x = static_cast<int>(kRows);
    config.block.x = 256;
    tw::PreparedLaunch launch = kernel.prepare(config, parameters);
    double us = time_us(stream_, 1, kSampleUs, [&](int) { launch.launch(stream_); });
    return static_cast<double>((1 + writes) * kRows * kColumns * 4) / us * 1e-6;
  }

  // ---- One shape ----

  double measure(const Shape& shape, std::string& tiling) {
    pool_.clear();
    std::vector<tw::PreparedLaunch> launches;
    double bytes = bytes_of(shape);
    auto wanted = static_cast<std::size_t>(static_cast<double>(kBeyondCache) / bytes + 1);
    while (launches.size() < wanted && static_cast<double>(pool_.left()) > bytes * 1.02 + 65536) {
      tw::KdaConvVerifyPlan plan = tw::plan_kda_conv_verify(
          device_.properties(), take_set(pool_, shape), options_of_bench());
      tiling = to_string(plan.config.tiling);
      launches.push_back(prepare(device_, plan));
    }
    auto launch = [&](int i) {
      launches[static_cast<std::size_t>(i) % launches.size()].launch(stream_);
    };
    double guess = bytes / 3e6 + 4;
    return time_us(stream_, static_cast<int>(launches.size()), guess, launch);
  }

  static std::vector<Shape> all_shapes() {
    std::vector<Shape> shapes;
    for (int tokens : {4, 6, 8}) {
      for (int heads : {8, 16, 32, 64}) {
        for (std::int64_t n = 1; n <= 128; n *= 2)
          shapes.push_back({tokens, heads, n});
      }
    }
    return shapes;
  }

  /// Assembles in parallel what the shapes will launch.
  void assemble() {
    std::map<std::string, tw::KdaConvVerifyPlan> plans;
    for (const Shape& shape : all_shapes()) {
      pool_.clear();
      tw::KdaConvVerifyPlan plan = tw::plan_kda_conv_verify(
          device_.properties(), take_set(pool_, shape), options_of_bench());
      plans.try_emplace(plan.key(), std::move(plan));
    }
    std::vector<std::future<void>> made;
    made.reserve(plans.size());
    for (const auto& [key, plan] : plans) {
      made.push_back(std::async(std::launch::async, [this, &key = key, &plan = plan] {
        tw::KernelCache::global().assemble(device_.target(), key, [&](tw::ptx::LineInfo info) {
          return tw::source_of(plan.trace(device_.target()), info);
        });
      }));
    }
    for (std::future<void>& each : made)
      each.get();
  }

  void shapes() {
    assemble();
    double write_heavy = stream_ceiling(4), copy = stream_ceiling(1);
    std::map<std::string, double> peers = read_peers();
    std::vector<Row> rows;
    for (const Shape& shape : all_shapes()) {
      Row row{.name = "kda_conv_verify " + name_of(shape)};
      row.us = measure(shape, row.tiling);
      double rate = bytes_of(shape) / row.us * 1e-6;
      row.counters = {{"bytes", bytes_of(shape)},
                      {"bytes_per_second", rate * 1e12},
                      {"of_ceiling", rate / write_heavy},
                      {"of_copy", rate / copy}};
      auto peer = peers.find(name_of(shape));
      if (peer != peers.end()) {
        row.counters.emplace_back("peer_us", peer->second);
        row.counters.emplace_back("speedup", peer->second / row.us);
      }
      print(row);
      rows.push_back(std::move(row));
    }
    Row ceiling{"ceilings", 0, {{"write_heavy_tbs", write_heavy}, {"copy_tbs", copy}}, ""};
    print(ceiling);
    if (!peers.empty()) rows.push_back(summary(rows));
    write(rows);
  }

  Row summary(const std::vector<Row>& rows) const {
    double logs = 0, least = 1e9;
    int slower = 0;
    for (const Row& row : rows) {
      double speedup = row.counters.back().second;
      logs += std::log(speedup);
      least = std::min(least, speedup);
      slower += speedup <= 1 ? 1 : 0;
    }
    Row row{"kda_conv_verify all shapes",
            0,
            {{"shapes", static_cast<double>(rows.size())},
             {"speedup", std::exp(logs / static_cast<double>(rows.size()))},
             {"least_speedup", least},
             {"not_faster", static_cast<double>(slower)}},
            ""};
    print(row);
    return row;
  }

  // ---- Repeats ----

  /// Of both variants, with and without a warp that rolls conv_state alone.
  static std::vector<tw::KdaTiling> tilings() {
    std::vector<tw::KdaTiling> list;
    list.push_back({.variant = tw::KdaVariant::small_batch,
                    .warps = 2,
                    .tile_rows = 16,
                    .cluster = 8,
                    .blocks_per_sm = 1});
    constexpr std::array<std::array<int, 5>, 12> kShapes{{{8, 16, 1, 8, 1},
                                                          {8, 32, 1, 4, 0},
                                                          {9, 32, 1, 4, 1},
                                                          {9, 64, 2, 2, 1},
                                                          {16, 16, 1, 8, 1},
                                                          {16, 32, 1, 4, 1},
                                                          {16, 64, 1, 2, 1},
                                                          {17, 64, 1, 2, 1},
                                                          {8, 64, 2, 2, 0},
                                                          {8, 64, 2, 2, 1},
                                                          {8, 128, 4, 1, 0},
                                                          {9, 128, 4, 1, 1}}};
    for (auto [warps, rows, lane, cluster, eager] : kShapes) {
      list.push_back({.warps = warps,
                      .tile_rows = rows,
                      .rows_per_lane = lane,
                      .cluster = cluster,
                      .blocks_per_sm = 1,
                      .eager = eager != 0,
                      .fetch = eager != 0 ? tw::KdaFetch::states : tw::KdaFetch::none});
      if (eager == 0 || warps > 9) continue;  // more warps have no registers to guess with
      list.push_back(list.back());
      list.back().guesses_state = true;
    }
    return list;
  }

  /// Of each tiling: launched over and over, compared with the first launch.
  void repeats() {
    Shape shape{4, 2, 3};
    std::vector<Row> rows;
    for (const tw::KdaTiling& tiling : tilings()) {
      pool_.clear();
      tw::KdaConvVerifyTensors set = take_set(pool_, shape);
      fill_random(set);
      tw::PreparedLaunch op = prepare(
          device_, tw::plan_kda_conv_verify(device_.properties(), set, options_of_bench(), tiling));
      std::vector<tw::tune::Session::Place> written;
      for (const tw::View& view : {set.out, *set.intermediate_states_buffer,
                                   *set.intermediate_conv_window, set.conv_state})
        written.push_back({"", view.address, tw::size_bytes(view)});
      const tw::tune::Repeats repeats = tw::tune::repeat(
          stream_, written, [&] { op.launch(stream_); }, options_.repeats);
      std::uint64_t different = 0;
      for (const tw::tune::Repeats::Difference& each : repeats.differences)
        different += each.count;
      Row row{"repeats " + name_of(shape),
              0,
              {{"repeats", static_cast<double>(options_.repeats)},
               {"different_words", static_cast<double>(different)}},
              to_string(tiling)};
      print(row);
      rows.push_back(std::move(row));
    }
    write(rows);
  }

  void fill_random(const tw::KdaConvVerifyTensors& set) {
    std::uint32_t state = 1;
    for (const tw::View* view : {&set.mixed_qkv, &set.conv_weight, &*set.conv_bias, &set.conv_state,
                                 &set.a, &set.b, &set.dt_bias, &set.ssm_states}) {
      std::vector<double> values(static_cast<std::size_t>(tw::size(*view)));
      for (double& value : values) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<double>(state >> 8) * 0x1p-24 - 0.5;
      }
      tw::Array array = tw::make_array("", view->type, {tw::size(*view)}, values);
      tw::copy_to_device(view->address, array.bytes, stream_);
      stream_.synchronize();
    }
  }

  // ---- Files ----

  std::map<std::string, double> read_peers() const {
    std::map<std::string, double> peers;
    if (options_.peer.empty()) return peers;
    std::ifstream file(options_.peer);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream cells(line);
      std::vector<std::string> cell;
      for (std::string each; std::getline(cells, each, ',');)
        cell.push_back(each);
      if (cell.size() != 7 || std::isdigit(cell[0][0]) == 0) continue;  // comments, titles
      std::string key = "T=" + cell[0] + " H=" + cell[1] + " N=" + cell[2];
      peers[key] = std::min(std::stod(cell[3]), std::stod(cell[5]));
    }
    return peers;
  }

  static void print(const Row& row) {
    std::printf("%-40s %9.2f us", row.name.c_str(), row.us);
    for (const auto& [name, value] : row.counters)
      std::printf("  %s %.4g", name.c_str(), value);
    std::printf("  %s\n", row.tiling.c_str());
    std::fflush(stdout);
  }

  void write(const std::vector<Row>& rows) const {
    if (options_.json.empty()) return;
    std::ofstream file(options_.json);
    char date[32];
    std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    int driver = device_.properties().driver_version;
    file << "{\n \"context\": {\"date\": \"" << date << "\", \"device\": \""
         << device_.properties().name << "\", \"driver\": \"CUDA " << driver / 1000 << "."
         << driver % 1000 / 10 << "\", \"commit\": \"" << options_.commit
         << "\"},\n \"benchmarks\": [";
    const char* separator = "\n";
    for (const Row& row : rows) {
      file << separator << "  {\"name\": \"" << row.name << "\", \"real_time\": " << row.us
           << ", \"time_unit\": \"us\"";
      for (const auto& [name, value] : row.counters)
        file << ", \"" << name << "\": " << value;
      file << ", \"tiling\": \"" << row.tiling << "\"}";
      separator = ",\n";
    }
    file << "\n ]\n}\n";
  }

  Options options_;
  tw::Device device_;
  tw::Stream stream_;
  Pool pool_;
};

bool set_option(Options& options, const std::string& flag, const std::string& value) {
  const std::map<std::string, std::string*> texts{{"--device", &options.device},
                                                  {"--mode", &options.mode},
                                                  {"--peer", &options.peer},
                                                  {"--commit", &options.commit},
                                                  {"--json", &options.json}};
  if (flag == "--repeats") {
    options.repeats = std::stoi(value);
    return true;
  }
  const auto text = texts.find(flag);
  if (text == texts.end()) return false;
  *text->second = value;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc || !set_option(options, argv[i], argv[i + 1]))
      return std::fputs(kUsage, stderr), 2;
  }
  try {
    Bench(options).run();
    return 0;
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Timing an operator and copies by graph replay.
#include "cli/measure.h"

#include "cli/text.h"
#include "tilewright/assembler.h"
#include "tilewright/graph.h"
#include "tilewright/stream.h"
#include "tune/timing.h"

#include <algorithm>
#include <functional>

namespace tilewright::cli {
namespace {

constexpr int kReplays = 15;
constexpr double kReplayUs = 1000;  // long against the 1 µs that events resolve

/// A way to do the same work `launches` times.
struct Candidate {
  std::string name;
  std::function<void()> run;  ///< queues the launches on the stream
  std::vector<double> us;     ///< a launch
};

/// Pools between which a copy of half the bytes runs; places in them rotate.
class CopyPools {
 public:
  CopyPools(const Device& device, std::int64_t bytes, int launches)
      : half_(bytes / 2),
        step_((half_ + 255) / 256 * 256),
        places_(places(device, step_, launches)),
        from_(device, step_ * places_),
        to_(device, step_ * places_) {
    from_.fill(std::byte{0x3c});
  }
  std::int64_t half() const { return half_; }
  DeviceAddress from(int launch) const { return from_.address() + offset(launch); }
  DeviceAddress to(int launch) const { return to_.address() + offset(launch); }

 private:
  static std::int64_t places(const Device& device, std::int64_t step, int launches) {
    const std::int64_t beyond_cache = 4 * device.properties().l2_bytes / (2 * step) + 1;
    const std::int64_t fitting = device.memory().free_bytes / (4 * step);
    return std::max<std::int64_t>(1, std::min({beyond_cache + 1, std::int64_t{launches}, fitting}));
  }
  std::uint64_t offset(int launch) const {
    return static_cast<std::uint64_t>(launch % places_ * step_);
  }
  std::int64_t half_, step_, places_;
  Buffer from_, to_;
};

/// Arguments of tile_copy for bytes at two addresses: four-byte elements in rows.
Arguments copy_arguments(const Operator& op, DeviceAddress from, DeviceAddress to,
                         std::int64_t bytes) {
  const std::int64_t words = bytes / 4;
  std::int64_t columns = 1;
  while (columns < 8192 && words % (columns * 2) == 0)
    columns *= 2;
  const std::vector<std::int64_t> shape = {words / columns, columns};
  Arguments arguments(op.schema);
  arguments.set("src", make_view(from, Type::f32, shape));
  arguments.set("dst", make_view(to, Type::f32, shape));
  return arguments;
}

/// Takes turns among the candidates.
void run_rounds(const Stream& stream, int launches, std::vector<Candidate>& candidates) {
  const tune::ColdClock clock(stream);
  for (int round = -1; round < kReplays; ++round) {  // round -1 warms up
    for (Candidate& candidate : candidates) {
      const double us = clock.us(candidate.run) / launches;
      if (round >= 0) candidate.us.push_back(us);
    }
  }
}

void add_copies(std::vector<Candidate>& candidates, std::vector<Graph>& graphs,
                const CopyPools& pools, const Stream& stream, int launches,
                std::span<const Operator* const> operators) {
  const auto copy_all = [&pools, &stream, launches] {
    for (int i = 0; i < launches; ++i) {
      copy_on_device(pools.to(i), pools.from(i), pools.half(), stream);
    }
  };
  candidates.push_back({"memcpy", copy_all, {}});
  graphs.push_back(Graph::capture(stream, copy_all));
  candidates.push_back({"memcpy in a graph", {}, {}});
  const auto tile_copy = std::find_if(operators.begin(), operators.end(), [](const Operator* op) {
    return op->schema.name == "tile_copy";
  });
  if (tile_copy == operators.end() || pools.half() % 4 != 0) return;
  const Operator& op = **tile_copy;
  const auto launch = [&](int i) {
    op.launch(stream.device(), stream,
              copy_arguments(op, pools.from(i), pools.to(i), pools.half()));
  };
  launch(0);  // assembles, which a capture must not
  stream.synchronize();
  graphs.push_back(Graph::capture(stream, [&] {
    for (int i = 0; i < launches; ++i)
      launch(i);
  }));
  candidates.push_back({"tile_copy", {}, {}});
}

}  // namespace

double Measurement::bytes_per_second() const {
  return time.median_us > 0 ? static_cast<double>(bytes) / time.median_us * 1e6 : 0;
}

double Measurement::of_ceiling() const {
  return time.median_us > 0 ? ceiling.median_us / time.median_us : 0;
}

Measurement measure(const Stream& stream, const tune::Inputs& inputs,
                    const std::vector<std::string>& wanted,
                    std::span<const Operator* const> operators) {
  const tune::Rotation rotation(stream, inputs, wanted, kReplayUs);
  Measurement result;
  result.launches = rotation.launches();
  result.copies = rotation.copies();
  result.replays = kReplays;
  if (inputs.op->bytes != nullptr) result.bytes = inputs.op->bytes(rotation.arguments());
  std::vector<Graph> graphs;
  graphs.push_back(rotation.capture());
  std::vector<Candidate> candidates = {{std::string(inputs.op->schema.name), {}, {}}};
  std::optional<CopyPools> pools;
  if (result.bytes >= 2) {
    pools.emplace(stream.device(), result.bytes, result.launches);
    add_copies(candidates, graphs, *pools, stream, result.launches, operators);
  }
  std::size_t next = 0;
  for (Candidate& candidate : candidates) {
    if (candidate.run) continue;
    candidate.run = [&stream, graph = &graphs[next++]] { graph->launch(stream); };
  }
  run_rounds(stream, result.launches, candidates);
  result.time = tune::timing_of(candidates.front().us);
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const tune::Timing copy = tune::timing_of(candidates[i].us);
    if (i > 1 && copy.median_us >= result.ceiling.median_us) continue;
    result.ceiling = copy;
    result.ceiling_by = candidates[i].name;
  }
  return result;
}

std::string assembler_text() {
  for (const AssemblerInfo& info : assemblers()) {
    if (info.usable) return info.name + (info.version.empty() ? "" : " " + info.version);
  }
  return "none";
}

std::string driver_text(const Device& device) {
  const int driver = device.properties().driver_version;
  return "CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
}

std::string text_of(const Measurement& m) {
  std::string text = fixed(m.time.median_us, 2) + " us a launch (median of " +
                     std::to_string(m.replays) + " replays of " + std::to_string(m.launches) +
                     " launches on cold tensors; " + fixed(m.time.fastest_us, 2) + " to " +
                     fixed(m.time.slowest_us, 2) + ")";
  if (m.bytes == 0) return text;
  text += ", " + grouped(m.bytes) + " bytes, " + fixed(m.bytes_per_second() * 1e-12, 3) + " TB/s";
  if (m.ceiling.median_us == 0) return text;
  return text + ", " + fixed(m.of_ceiling() * 100, 1) + " % of a copy of as many bytes (" +
         fixed(m.ceiling.median_us, 2) + " us by " + m.ceiling_by + ")";
}

Json json_of(const Measurement& m) {
  return {{"run_type", "aggregate"},
          {"aggregate_name", "median"},
          {"real_time", m.time.median_us},
          {"cpu_time", m.time.median_us},
          {"time_unit", "us"},
          {"fastest_us", m.time.fastest_us},
          {"slowest_us", m.time.slowest_us},
          {"launches", m.launches},
          {"replays", m.replays},
          {"rotating_copies", m.copies},
          {"bytes", m.bytes},
          {"bytes_per_second", m.bytes_per_second()},
          {"of_ceiling", m.of_ceiling()},
          {"ceiling_us", m.ceiling.median_us},
          {"ceiling_by", m.ceiling_by},
          {"above_copy_us", m.time.median_us - m.ceiling.median_us}};
}

}  // namespace tilewright::cli

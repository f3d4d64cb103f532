// SPDX-License-Identifier: Apache-2.0
// Rates of GPUs, and counts divided by them.
#include "cli/roofline.h"

#include "cli/text.h"
#include "tilewright/error.h"

#include <algorithm>

namespace tilewright::cli {
namespace {

struct GpuRates {
  std::string_view name;
  double memory_bytes;   ///< a second
  double sms, clock_hz;  ///< the clock of the published peaks
  double tensor_ops;     ///< f16 and bf16, dense, a second
};

// Data sheets and whitepapers of the A100, H100 and H200 (SXM). The names are those of the driver.
constexpr GpuRates kGpus[] = {
    {"NVIDIA A100-SXM4-80GB", 2.039e12, 108, 1.41e9, 312e12},
    {"NVIDIA H100 80GB HBM3", 3.35e12, 132, 1.83e9, 989.4e12},
    {"NVIDIA H200", 4.8e12, 132, 1.83e9, 989.4e12},
};
constexpr double kLanesPerCycle = 128;        ///< four warps issue in a cycle of an SM
constexpr double kSharedBytesPerCycle = 128;  ///< 32 banks of 4 bytes

const GpuRates& rates_of(std::string_view gpu) {
  std::string names;
  for (const GpuRates& each : kGpus) {
    if (each.name == gpu) return each;
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  throw Error(ErrorKind::user,
              "--roofline " + std::string(gpu) + ": the GPUs with known rates are " + names);
}

const Bound& longest(const std::vector<Bound>& bounds) {
  return *std::max_element(bounds.begin(), bounds.end(),
                           [](const Bound& a, const Bound& b) { return a.us < b.us; });
}

}  // namespace

std::vector<Bound> bounds_of(const emu::Counters& c, std::string_view gpu) {
  const GpuRates& g = rates_of(gpu);
  const double cycles = g.sms * g.clock_hz;
  std::vector<Bound> bounds = {
      {"global memory", "bytes", c.global_read_bytes + c.global_written_bytes + c.async_bytes,
       g.memory_bytes},
      {"shared memory", "bytes", c.shared_read_bytes + c.shared_written_bytes,
       kSharedBytesPerCycle * cycles},
      {"instructions", "of threads", c.thread_instructions, kLanesPerCycle * cycles},
      {"tensor cores", "operations", c.tensor_ops, g.tensor_ops},
  };
  for (Bound& bound : bounds)
    bound.us = static_cast<double>(bound.amount) / bound.rate * 1e6;
  return bounds;
}

std::string roofline_text(const std::vector<Bound>& bounds, std::string_view gpu) {
  Columns columns;
  columns.add({"roofline of " + std::string(gpu), "counted", "", "10^9 / s", "us at least"});
  for (const Bound& bound : bounds) {
    columns.add({bound.what, grouped(bound.amount), bound.unit, fixed(bound.rate / 1e9, 0),
                 fixed(bound.us, 4)});
  }
  const Bound& most = longest(bounds);
  return columns.text() + "bound     " + fixed(most.us, 4) + " us by " + most.what + "\n";
}

Json json_of(const std::vector<Bound>& bounds, std::string_view gpu) {
  Json json = {{"gpu", gpu}, {"bound_us", longest(bounds).us}, {"bound_by", longest(bounds).what}};
  for (const Bound& bound : bounds) {
    json["bounds"].push_back({{"what", bound.what},
                              {"amount", bound.amount},
                              {"per_second", bound.rate},
                              {"us", bound.us}});
  }
  return json;
}

}  // namespace tilewright::cli

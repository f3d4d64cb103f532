// SPDX-License-Identifier: Apache-2.0
// `tilewright doctor`: what this machine has, and why what is missing is missing.
#include "cli/json.h"
#include "cli/program.h"
#include "cli/text.h"
#include "tilewright/assembler.h"
#include "tilewright/cache.h"
#include "tilewright/device.h"

#include <memory>

namespace tilewright::cli {
namespace {

struct DeviceState {
  std::string id;
  DeviceProperties properties;
  std::string problem;
};

/// A device that cannot be opened is reported, not fatal: that is what the command is for.
std::vector<DeviceState> look_at_devices() {
  std::vector<DeviceState> states;
  for (int i = 0; i < Device::cuda_count(); ++i) {
    DeviceState state{"cuda:" + std::to_string(i), {}, {}};
    try {
      state.properties = Device::open(state.id).properties();
    } catch (const Error& error) {
      state.problem = error.message();
    }
    states.push_back(std::move(state));
  }
  return states;
}

struct CacheState {
  std::string directory;
  bool disk = false;
  std::int64_t entries = 0;
  std::int64_t bytes = 0;
  std::int64_t refused = 0;
  std::string problem;
};

CacheState look_at_cache() {
  CacheState state;
  try {
    const KernelCache& cache = KernelCache::global();
    state.directory = cache.options().directory;
    if (state.directory.empty()) state.directory = default_cache_directory();
    state.disk = cache.options().disk && !state.directory.empty();
    for (const CacheEntry& entry : cache.list()) {
      ++state.entries;
      state.bytes += entry.size_bytes;
      state.refused += entry.problem.empty() ? 0 : 1;
    }
    for (const std::string& warning : cache.warnings()) {
      state.problem += (state.problem.empty() ? "" : "; ") + warning;
    }
  } catch (const Error& error) {
    state.problem = error.message();
  }
  return state;
}

std::string version_text(int cuda) {
  return std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
}

std::string devices_text(const std::vector<DeviceState>& devices) {
  if (devices.empty()) {
    return "devices    no cuda device: " + Device::why_no_cuda() +
           "\n           emu:sm_90a and other targets run in the emulator\n";
  }
  std::string text;
  for (const DeviceState& device : devices) {
    const DeviceProperties& p = device.properties;
    text += text.empty() ? "devices    " : "           ";
    text += device.id + "  ";
    text += device.problem.empty()
                ? p.name + ", " + to_string(p.target) + ", " + std::to_string(p.sm_count) +
                      " multiprocessors, " + bytes_text(p.memory_bytes) + ", L2 " +
                      bytes_text(p.l2_bytes) + ", driver for CUDA " + version_text(p.driver_version)
                : "cannot be opened: " + device.problem;
    text += "\n";
  }
  return text;
}

std::string assembler_text(const AssemblerInfo& info) {
  std::string text = info.name;
  if (!info.version.empty()) text += " " + info.version;
  if (!info.path.empty()) text += " (" + info.path + ")";
  if (info.usable && info.newest_ptx.major > 0) {
    text += ", PTX up to " + to_string(info.newest_ptx);
  }
  if (!info.usable) text += ": not usable: " + info.reason;
  return text + "\n";
}

std::string assemblers_text() {
  std::string text;
  for (const AssemblerInfo& info : assemblers()) {
    text += text.empty() ? "assemblers " : "           ";
    text += assembler_text(info);
  }
  if (text.empty()) text = "assemblers none: " + why_no_assembler() + "\n";
  return text + "linker     " + assembler_text(linker());
}

std::string cache_text(const CacheState& cache) {
  std::string text = "cache      ";
  if (!cache.disk) {
    text += "in memory only";
  } else {
    text +=
        cache.directory + ", " + plural(cache.entries, "entry") + ", " + bytes_text(cache.bytes);
    if (cache.refused > 0) text += ", " + grouped(cache.refused) + " refused (see cache verify)";
  }
  return text + (cache.problem.empty() ? "" : ": " + cache.problem) + "\n";
}

Json json_of(const AssemblerInfo& info) {
  return {{"name", info.name},
          {"version", info.version},
          {"path", info.path},
          {"usable", info.usable},
          {"reason", info.reason}};
}

Json json_of(const std::vector<DeviceState>& devices, const CacheState& cache,
             std::size_t operators) {
  Json json = {{"version", TILEWRIGHT_VERSION},    {"compiler", TILEWRIGHT_COMPILER},
               {"operators", operators},           {"devices", Json::array()},
               {"no_cuda", Device::why_no_cuda()}, {"assemblers", Json::array()}};
  for (const DeviceState& device : devices) {
    const DeviceProperties& p = device.properties;
    json["devices"].push_back({{"id", device.id},
                               {"name", p.name},
                               {"target", to_string(p.target)},
                               {"multiprocessors", p.sm_count},
                               {"memory_bytes", p.memory_bytes},
                               {"l2_bytes", p.l2_bytes},
                               {"driver_cuda", version_text(p.driver_version)},
                               {"problem", device.problem}});
  }
  for (const AssemblerInfo& info : assemblers())
    json["assemblers"].push_back(json_of(info));
  json["linker"] = json_of(linker());
  json["cache"] = {{"directory", cache.directory}, {"disk", cache.disk},
                   {"entries", cache.entries},     {"bytes", cache.bytes},
                   {"refused", cache.refused},     {"problem", cache.problem}};
  return json;
}

void doctor(const Program& program, Format format) {
  const std::vector<DeviceState> devices = look_at_devices();
  const CacheState cache = look_at_cache();
  if (format == Format::json) {
    print_json(json_of(devices, cache, program.operators.size()));
    return;
  }
  print("tilewright " TILEWRIGHT_VERSION ", built by " TILEWRIGHT_COMPILER ", " +
        plural(static_cast<std::int64_t>(program.operators.size()), "operator") + "\n" +
        devices_text(devices) + assemblers_text() + cache_text(cache));
}

}  // namespace

void add_doctor_command(CLI::App& app, Program& program) {
  auto format = std::make_shared<Format>(Format::text);
  CLI::App* command =
      app.add_subcommand("doctor", "Say which devices, assemblers and cache there are");
  add_json_flag(*command, *format);
  command->callback([&program, format] { doctor(program, *format); });
}

}  // namespace tilewright::cli

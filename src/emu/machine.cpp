// SPDX-License-Identifier: Apache-2.0
// The public handles: memory of a device, programs, and launches.
#include "emu/decode.h"
#include "emu/grid.h"
#include "emu/launch.h"
#include "emu/past.h"
#include "tilewright/emulator.h"
#include "tilewright/module.h"

#include <algorithm>
#include <cstring>

namespace tilewright::emu {

using detail::Allocation;
using detail::Code;
using detail::Device;
using detail::Memory;

namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::user, message); }

Allocation& checked(const Device& device, std::uint64_t address, std::int64_t bytes,
                    std::string_view what) {
  Allocation* a = device.memory->at_or_below(address);
  if (a == nullptr || bytes < 0 || !a->contains(address, bytes) || a->freed) {
    fail(std::string(what) + ": " + std::to_string(bytes) + " bytes at " + detail::hex(address) +
         " are not in an allocation" + (a != nullptr && a->freed ? "; it was freed" : "") +
         "; use an address from allocate()");
  }
  return *a;
}

}  // namespace

Fabric::Fabric() : memory_(new Memory) {}
Fabric::~Fabric() { delete memory_; }

std::uint64_t Fabric::multicast(std::span<const std::uint64_t> members, std::int64_t bytes) {
  if (members.empty()) fail("multicast: no members");
  for (const std::uint64_t m : members) {
    const Allocation* a = memory_->at_or_below(m);
    if (a == nullptr || a->freed || bytes <= 0 || !a->contains(m, bytes)) {
      fail("multicast: " + std::to_string(bytes) + " bytes at " + detail::hex(m) +
           " are not in an allocation");
    }
  }
  Allocation& a = memory_->allocate(bytes, "multicast", -1);
  a.members.assign(members.begin(), members.end());
  return a.base;
}

Machine::Machine(ptx::Target target, MachineOptions options) : device_(new Device) {
  device_->target = target;
  device_->options = options;
  if (device_->options.multiprocessors <= 0) {
    device_->options.multiprocessors = detail::hardware_limits(target).multiprocessors;
  }
  if (options.fabric == nullptr) {
    device_->own_fabric = std::make_unique<Fabric>();
    device_->memory = &device_->own_fabric->memory();
  } else {
    device_->memory = &options.fabric->memory();
  }
  device_->index = device_->memory->devices++;
}

Machine::~Machine() {
  if (device_ == nullptr) return;
  std::erase_if(device_->memory->past,
                [&](const detail::PastLaunch& p) { return p.grid->device == device_; });
  delete device_;
}
Machine::Machine(Machine&& other) noexcept : device_(std::exchange(other.device_, nullptr)) {}
Machine& Machine::operator=(Machine&& other) noexcept {
  std::swap(device_, other.device_);
  return *this;
}

ptx::Target Machine::target() const { return device_->target; }

std::uint64_t Machine::allocate(std::int64_t bytes, std::string label) {
  if (bytes < 0 || bytes > (std::int64_t{1} << 44)) {
    fail("allocate: " + std::to_string(bytes) + " bytes; sizes are 0 to 2^44");
  }
  return device_->memory->allocate(bytes, std::move(label), device_->index).base;
}

void Machine::free(std::uint64_t address) {
  Allocation& a = checked(*device_, address, 0, "free");
  if (a.base != address) fail("free: " + detail::hex(address) + " is inside an allocation");
  device_->memory->release(a);
}

void Machine::write(std::uint64_t address, std::span<const std::byte> bytes) {
  Allocation& a = checked(*device_, address, static_cast<std::int64_t>(bytes.size()), "write");
  device_->memory->write(a, address, bytes);
}

void Machine::read(std::uint64_t address, std::span<std::byte> bytes) const {
  Allocation& a = checked(*device_, address, static_cast<std::int64_t>(bytes.size()), "read");
  device_->memory->read(a, address, bytes);
}

void Machine::forget(std::uint64_t address, std::int64_t bytes) {
  Allocation& a = checked(*device_, address, bytes, "forget");
  device_->memory->forget(a, address, bytes);
}

void Machine::fill(std::uint64_t address, std::int64_t bytes, std::uint32_t pattern, int width) {
  if (width != 1 && width != 2 && width != 4) {
    fail("fill: the pattern has " + std::to_string(width) + " bytes; use 1, 2 or 4");
  }
  Allocation& a = checked(*device_, address, bytes, "fill");
  device_->memory->fill(a, address, bytes, pattern, width);
}

void Machine::copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes) {
  Allocation& source = checked(*device_, from, bytes, "copy");
  Allocation& target = checked(*device_, to, bytes, "copy");
  std::vector<std::byte> piece;
  while (bytes > 0) {
    const std::int64_t count = std::min<std::int64_t>(bytes, 1 << 16);
    piece.resize(static_cast<std::size_t>(count));
    device_->memory->read(source, from, piece);
    device_->memory->write(target, to, piece);
    from += static_cast<std::uint64_t>(count);
    to += static_cast<std::uint64_t>(count);
    bytes -= count;
  }
}

namespace {

/// Operands as the table has them: what decodes relies on it.
void check_operands(const ptx::Module& module) {
  for (const ptx::Function& f : module.functions) {
    for (const ptx::Stmt& stmt : f.body) {
      const auto* instr = std::get_if<ptx::Instr>(&stmt);
      if (instr == nullptr) continue;
      try {
        ptx::check_instruction(module, f, *instr);
      } catch (const Error& error) {
        throw Error(error.kind(), "line " + std::to_string(instr->line) + ": " + error.message());
      }
    }
  }
}

}  // namespace

Program Machine::load(const ptx::Module& module) {
  detail::check_target(module, device_->target);
  ptx::check_capabilities(module);
  check_operands(module);
  auto& codes = device_->codes;
  codes.push_back(detail::decode(module, *device_));
  return Program{codes.back().get()};
}

void Machine::unload(Program program) {
  auto& codes = device_->codes;
  auto it = std::find_if(codes.begin(), codes.end(),
                         [&](const auto& c) { return c.get() == program.code; });
  if (it == codes.end()) fail("unload: the program is not of this machine");
  for (const auto& g : (*it)->globals) {
    device_->memory->release(*device_->memory->at_or_below(g.address));
  }
  std::erase_if(device_->memory->past,
                [&](const detail::PastLaunch& p) { return p.grid->code == program.code; });
  codes.erase(it);
}

std::uint64_t Machine::address_of(const Program& program, std::string_view variable) const {
  const detail::GlobalVariable* g = detail::find_global(*program.code, variable);
  if (g == nullptr) fail("the module has no global variable '" + std::string(variable) + "'");
  return g->address;
}

LaunchReport Machine::launch(const Launch& launch, const Options& options) {
  const Work work{this, launch};
  return std::move(launch_together(std::span(&work, 1), options)[0]);
}

std::vector<ParamSlot> parameters(const Program& program, std::string_view entry) {
  return detail::find_entry(*program.code, entry).params;
}

bool LaunchReport::ok() const {
  return completed && std::none_of(findings.begin(), findings.end(), [](const Diagnostic& d) {
           return d.severity != Severity::advice;
         });
}

std::vector<LaunchReport> launch_together(std::span<const Work> work, const Options& options) {
  if (work.empty()) return {};
  detail::Run run(options);
  run.memory = work[0].machine->device().memory;
  for (const Work& w : work) {
    if (w.machine->device().memory != run.memory) {
      fail("launch_together: the machines do not share a fabric");
    }
    Launch launch = w.launch;
    const detail::LaunchHooks& hooks = w.machine->device().hooks;
    if (hooks.before) hooks.before(launch);
    run.grids.push_back(detail::prepare(run, w.machine->device(), launch, options));
  }
  const std::int64_t before = run.memory->limit_bytes;
  run.memory->limit_bytes = run.memory->touched_bytes + options.limits.memory_bytes;
  detail::find_unordered(run);
  detail::run_all(run);
  run.memory->limit_bytes = before;
  std::vector<LaunchReport> reports;
  for (auto& grid : run.grids) {
    reports.push_back(detail::finish(*grid));
    const detail::LaunchHooks& hooks = grid->device->hooks;
    if (hooks.after) hooks.after(grid->launch, reports.back());
  }
  detail::remember(run);
  return reports;
}

}  // namespace tilewright::emu

// SPDX-License-Identifier: Apache-2.0
// Functions that the device runtime provides: vprintf, assertions, malloc and free.
#include "emu/builtins.h"

#include "emu/access.h"
#include "emu/local.h"

#include <bit>
#include <cstdio>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

/// Bytes at a generic address; false if they are not readable.
bool read_generic(Exec& x, unsigned lane, std::uint64_t address, std::int64_t bytes,
                  std::byte* out) {
  const Space space = space_of(address);
  if (space == Space::local) {
    bool defined = true;
    return read_local(x, lane, address % kWindowBytes, bytes, out, defined);
  }
  for (std::int64_t i = 0; i < bytes; ++i) {
    Located l;
    const std::uint64_t at =
        (space == Space::global ? address : address % kWindowBytes) + static_cast<std::uint64_t>(i);
    if (!locate(x, lane, space, at, 1, 0, Purpose::read, l)) return false;
    out[i] = l.data == nullptr ? std::byte{0} : *l.data;
  }
  return true;
}

std::uint64_t argument_value(Exec& x, const Argument& a, unsigned lane) {
  if (!a.variable) return x.value(a.slot, lane);
  const Frame& frame = x.warp->frames[x.split->frame];
  std::byte data[8] = {};
  bool defined = true;
  read_local(x, lane, kLocalBase + frame.local + a.local, std::min(a.bytes, 8U), data, defined);
  std::uint64_t value = 0;
  std::memcpy(&value, data, 8);
  return value;
}

void set_result(Exec& x, const Inst& in, unsigned lane, std::uint64_t value) {
  if (in.info->results.empty()) return;
  const Argument& r = in.info->results[0];
  if (!r.variable) {
    x.set(r.slot, lane, value);
    return;
  }
  const Frame& frame = x.warp->frames[x.split->frame];
  std::byte data[8];
  std::memcpy(data, &value, 8);
  write_local(x, lane, kLocalBase + frame.local + r.local, std::min(r.bytes, 8U), data, true);
}

struct DeviceSource final : PrintSource {
  Exec& x;
  unsigned lane;
  std::uint64_t buffer;
  std::uint64_t offset = 0;

  DeviceSource(Exec& exec, unsigned l, std::uint64_t at) : x(exec), lane(l), buffer(at) {}
  std::uint64_t argument(int bytes) override {
    const auto size = static_cast<std::uint64_t>(bytes);
    offset = (offset + size - 1) / size * size;
    std::byte data[8] = {};
    read_generic(x, lane, buffer + offset, bytes, data);
    offset += size;
    std::uint64_t value = 0;
    std::memcpy(&value, data, 8);
    return value;
  }
  std::string text(std::uint64_t address) override { return read_text(x, lane, address, 4096); }
};

void print(Exec& x, const Inst& in, unsigned lane) {
  const auto& args = in.info->arguments;
  if (args.size() < 2) return;
  const std::string format = read_text(x, lane, argument_value(x, args[0], lane), 4096);
  DeviceSource source(x, lane, argument_value(x, args[1], lane));
  std::string text = format_print(format, source);
  std::string& out = x.grid->report.output;
  const auto limit = static_cast<std::size_t>(x.grid->options.limits.output_bytes);
  if (out.size() + text.size() > limit) {
    report(x, {.kind = Kind::limit,
               .lane = lane,
               .message = "printed more than " + std::to_string(limit) +
                          " bytes; raise Limits::output_bytes",
               .range = {},
               .other = {}});
    text.resize(limit - std::min(limit, out.size()));
  }
  out += text;
  set_result(x, in, lane, 1);
}

void assertion_failed(Exec& x, const Inst& in, unsigned lane) {
  const auto& args = in.info->arguments;
  std::string text = "fails an assertion";
  if (args.size() >= 4) {
    text += ": " + read_text(x, lane, argument_value(x, args[0], lane), 1024) + ", at " +
            read_text(x, lane, argument_value(x, args[1], lane), 1024) + ":" +
            std::to_string(static_cast<std::uint32_t>(argument_value(x, args[2], lane)));
  }
  report(x, {.kind = Kind::illegal_instruction,
             .lane = lane,
             .message = std::move(text),
             .range = {},
             .other = {}});
  stop_grid(*x.grid);
}

void allocate(Exec& x, const Inst& in, unsigned lane) {
  std::uint64_t address = 0;
  const auto size = static_cast<std::int64_t>(
      in.info->arguments.empty() ? 0 : argument_value(x, in.info->arguments[0], lane));
  if (size > 0 && size <= x.grid->options.limits.memory_bytes) {
    address = x.run->memory->allocate(size, "device malloc", x.grid->device->index).base;
  }
  set_result(x, in, lane, address);
}

void release(Exec& x, const Inst& in, unsigned lane) {
  const std::uint64_t address =
      in.info->arguments.empty() ? 0 : argument_value(x, in.info->arguments[0], lane);
  if (address == 0) return;
  Allocation* a = x.run->memory->at_or_below(address);
  if (a == nullptr || a->base != address || a->freed) {
    report(x, {.kind = Kind::use_after_free,
               .lane = lane,
               .message = "frees " + hex(address) + ", which is not an allocation",
               .range = {},
               .other = {}});
    return;
  }
  x.run->memory->release(*a);
}

}  // namespace

std::string read_text(Exec& x, unsigned lane, std::uint64_t generic, std::size_t limit) {
  std::string text;
  std::byte b{};
  while (text.size() < limit && read_generic(x, lane, generic + text.size(), 1, &b)) {
    if (b == std::byte{0}) break;
    text.push_back(static_cast<char>(b));
  }
  return text;
}

Flow call_builtin(Exec& x, const Inst& in, std::uint32_t number) {
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (number == kVprintf) {
      print(x, in, lane);
    } else if (number == kMalloc) {
      allocate(x, in, lane);
    } else if (number == kFree) {
      release(x, in, lane);
    } else {
      assertion_failed(x, in, lane);
      return Flow::stop;
    }
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail

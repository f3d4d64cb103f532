// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor, and tensormap instructions.
#include "emu/async.h"
#include "emu/atomics.h"
#include "emu/bulk.h"
#include "emu/gather.h"
#include "emu/handlers.h"
#include "emu/mbarrier.h"
#include "emu/tensor_box.h"
#include "emu/tensor_map.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

std::uint64_t address_operand(Exec& x, const Inst& in, int i, unsigned lane) {
  const Slot& s = in.slot[in.info->start[static_cast<std::size_t>(i)]];
  const std::uint64_t at =
      x.value(s, lane) + static_cast<std::uint64_t>(in.info->offset[static_cast<std::size_t>(i)]);
  return s.cls == Class::b32 ? at & 0xffffffff : at;
}

void refuse(Exec& x, unsigned lane, Kind kind, std::string message) {
  report(x, {.kind = kind, .lane = lane, .message = std::move(message), .range = {}, .other = {}});
}

/// The map behind a generic address: parameters, constant and global memory.
std::optional<TensorMap> fetch_map(Exec& x, unsigned lane, std::uint64_t address) {
  EncodedTensorMap bytes{};
  if (address % 64 != 0) {
    refuse(x, lane, Kind::misaligned,
           "names a tensor map at " + hex(address) + ", which is no multiple of 64");
    return std::nullopt;
  }
  const bool param = address < kGlobalBase;
  if (param) {
    const std::uint64_t offset = address % kWindowBytes;
    if (offset + bytes.size() > x.grid->params.size()) {
      refuse(x, lane, Kind::out_of_bounds, "names a tensor map outside the parameters");
      return std::nullopt;
    }
    std::memcpy(bytes.data(), x.grid->params.data() + offset, bytes.size());
  } else {
    Block* none = nullptr;
    if (!bulk_range(x, lane, Space::global, address, 128, 64, Purpose::read, &none)) {
      return std::nullopt;
    }
    read_bytes(*x.run, nullptr, address, bytes);
    if (x.run->edited_maps.contains(address) && x.checks(Kind::proxy_fence)) {
      refuse(x, lane, Kind::proxy_fence,
             "uses the tensor map at " + hex(address) +
                 ", which was edited with no fence.proxy.tensormap::generic.acquire since");
    }
  }
  std::optional<TensorMap> map = decode_tensor_map(bytes);
  if (!map) {
    refuse(x, lane, Kind::illegal_instruction,
           "names bytes at " + hex(address) +
               " that are no tensor map of the emulator; make it with encode_tensor_map");
    return std::nullopt;
  }
  try {
    check_tensor_map(*map);  // tensormap.replace makes maps that nothing has checked
  } catch (const Error& error) {
    refuse(x, lane, Kind::illegal_instruction, "names a " + error.message());
    return std::nullopt;
  }
  return map;
}

std::uint32_t swizzled(std::uint32_t address, TensorSwizzle swizzle) {
  const auto bits = static_cast<std::uint32_t>(swizzle);  // 0, 1, 2, 3
  return address ^ ((address >> 7) & ((1U << bits) - 1)) << 4;
}

/// Calls `each(shared address, offset in the data, bytes)` in pieces that the swizzle keeps whole.
template <class Each>
void for_each_piece(std::uint32_t begin, std::uint32_t bytes, TensorSwizzle swizzle, Each each) {
  std::uint32_t done = 0;
  while (done < bytes) {
    const std::uint32_t at = begin + done;
    const std::uint32_t count = std::min(bytes - done, 16 - at % 16);
    each(swizzled(at, swizzle), done, count);
    done += count;
  }
}

void fill_outside(std::span<std::byte> out, const TensorMap& map) {
  std::uint64_t value = 0;
  if (map.fill == TensorFill::nan) {
    value = map.type == Type::f16    ? 0x7fff
            : map.type == Type::bf16 ? 0x7fff
            : map.type == Type::f64  ? 0x7fffffffffffffffULL
                                     : 0x7fffffff;
  }
  const auto size = static_cast<std::size_t>(bytes(map.type));
  for (std::size_t i = 0; i + size <= out.size(); i += size)
    std::memcpy(&out[i], &value, size);
}

struct TensorCopy {
  TensorMap map;
  std::vector<Segment> segments;
  std::uint64_t shared = 0;  ///< window address, with rank
  std::uint64_t mbarrier = 0;
  std::uint32_t bytes = 0;
  bool load = false;
  AtomOp reduce = AtomOp::none;
};

void run_load(Run& run, const TensorCopy& c, Block* owner) {
  for (const Segment& s : c.segments) {
    std::vector<std::byte> data(s.bytes);
    if (s.inside) {
      read_bytes(run, nullptr, s.global, data);
    } else {
      fill_outside(data, c.map);
    }
    const auto begin = static_cast<std::uint32_t>(c.shared) + s.shared;
    for_each_piece(begin, s.bytes, c.map.swizzle,
                   [&](std::uint32_t at, std::uint32_t from, std::uint32_t count) {
                     write_bytes(run, owner, at, std::span(data).subspan(from, count));
                   });
  }
}

void run_store(Run& run, const TensorCopy& c, const Block* owner) {
  const auto size = static_cast<std::size_t>(bytes(c.map.type));
  for (const Segment& s : c.segments) {
    if (!s.inside) continue;
    std::vector<std::byte> data(s.bytes);
    const auto begin = static_cast<std::uint32_t>(c.shared) + s.shared;
    for_each_piece(begin, s.bytes, c.map.swizzle,
                   [&](std::uint32_t at, std::uint32_t to, std::uint32_t count) {
                     read_bytes(run, owner, at, std::span(data).subspan(to, count));
                   });
    if (c.reduce != AtomOp::none) {
      std::vector<std::byte> old(s.bytes);
      read_bytes(run, nullptr, s.global, old);
      for (std::size_t i = 0; i + size <= data.size(); i += size) {
        std::uint64_t a = 0, b = 0;
        std::memcpy(&a, &old[i], size);
        std::memcpy(&b, &data[i], size);
        const std::uint64_t r = combine(c.reduce, c.map.type, a, b, false);
        std::memcpy(&data[i], &r, size);
      }
    }
    write_bytes(run, nullptr, s.global, data);
  }
}

/// The bounds, race and initialised-bytes checks of both sides. False: an address was refused.
bool note_copy(Exec& x, unsigned lane, const TensorCopy& c, BulkAgent reader, BulkAgent writer,
               Block** owner) {
  const Space space = Space::shared_cluster;
  constexpr std::int64_t kAlign = 128;
  if (!bulk_range(x, lane, space, c.shared, c.bytes, kAlign,
                  c.load ? Purpose::write : Purpose::read, owner)) {
    return false;
  }
  const Actor reads = bulk_actor(x, lane, reader, "tensor copy");
  const Actor writes = bulk_actor(x, lane, writer, "tensor copy");
  for (const Segment& s : c.segments) {
    if (!s.inside) continue;
    Block* none = nullptr;
    if (!bulk_range(x, lane, Space::global, s.global, s.bytes, 0,
                    c.load ? Purpose::read : Purpose::write, &none)) {
      return false;
    }
    const Access access = c.load                     ? Access::read
                          : c.reduce == AtomOp::none ? Access::write
                                                     : Access::atomic;
    note_bulk(x, lane, Space::global, s.global, s.bytes, access, c.load ? reads : writes,
              bytes(c.map.type));
  }
  note_bulk(x, lane, space, c.shared, c.bytes, c.load ? Access::write : Access::read,
            c.load ? writes : reads);
  return true;
}

void issue(Exec& x, unsigned lane, const TensorCopy& c) {
  Block& block = *x.block;
  const std::uint32_t thread = x.warp->thread(lane);
  Block *owner = nullptr, *bar_owner = nullptr;
  if (c.load) {
    if (find_mbarrier(x, lane, Space::shared_cluster, c.mbarrier) == nullptr) return;
    bar_owner = owner_of(x, c.mbarrier);
  }
  const BulkAgent reader = take_agent(block), writer = take_agent(block);
  if (!note_copy(x, lane, c, reader, writer, &owner)) return;
  const SnapshotRef done = join(completion(block, reader), completion(block, writer));
  const BulkAgent shared_agent = c.load ? writer : reader;
  owner->issued.push_back(
      {shared_agent.agent, shared_agent.epoch, block.number, thread, x.pc, !c.load});
  const std::uint64_t group = c.load ? 0 : x.warp->bulk_group[lane];
  if (!c.load) block.bulk_groups.push_back({thread, group, reader, writer});
  x.grid->report.counters.async_bytes += c.bytes;
  Run* run = x.run;
  auto deliver = [run, c, owner, bar_owner, done] {
    if (!c.load) {
      run_store(*run, c, owner);
      return;
    }
    run_load(*run, c, owner);
    auto it = bar_owner->mbarriers.find(static_cast<std::uint32_t>(c.mbarrier & 0xffffff));
    if (it != bar_owner->mbarriers.end()) complete_tx(*run, it->second, c.bytes, done);
  };
  enqueue(x, {x.grid, &block, owner, thread, group, std::move(deliver)});
}

TensorCoord coordinates(Exec& x, const Inst& in, int operand, unsigned lane) {
  TensorCoord at{};
  const auto i = static_cast<std::size_t>(operand);
  for (std::size_t d = 0; d + 1 < in.info->count[i] && d < 5; ++d) {
    const Slot& s = in.slot[in.info->start[i] + 1 + d];
    at[d] = static_cast<std::int32_t>(x.value(s, lane));
  }
  return at;
}

/// Whether instruction and map agree on the mode, the rank, and a size that can be copied.
bool fits(Exec& x, const Inst& in, unsigned lane, const TensorMap& map, int given) {
  std::string why;
  const bool im2col = in.info->has<"im2col">() || in.info->has<"im2col_no_offs">();
  if (given != map.rank) {
    why = "gives " + std::to_string(given) + " coordinates for a tensor of rank " +
          std::to_string(map.rank);
  } else if (im2col != map.im2col.has_value()) {
    why = im2col ? "is in im2col mode, but its tensor map is tiled"
                 : "is in tile mode, but its tensor map is of im2col mode";
  } else if (box_bytes(map) > static_cast<std::uint64_t>(x.grid->declared_shared_bytes)) {
    why = "moves " + std::to_string(box_bytes(map)) + " bytes, but the block has " +
          std::to_string(x.grid->declared_shared_bytes) + " of shared memory";
  }
  if (!why.empty()) refuse(x, lane, Kind::illegal_instruction, std::move(why));
  return why.empty();
}

std::vector<Segment> segments_of(Exec& x, const Inst& in, unsigned lane, const TensorMap& map,
                                 const TensorCoord& at) {
  if (!map.im2col) return tile_segments(map, at);
  std::array<std::int64_t, 3> offsets{};
  constexpr std::size_t kOffsets = 3;  // the operand
  for (std::size_t i = 0; in.info->has<"im2col">() && i < in.info->count[kOffsets]; ++i) {
    const Slot& s = in.slot[in.info->start[kOffsets] + i];
    offsets[i] = static_cast<std::int64_t>(x.value(s, lane) & 0xffff);
  }
  return im2col_segments(map, at, offsets);
}

}  // namespace

Flow exec_tensor_copy(Exec& x, const Inst& in) {
  const bool load = in.info->has<"mbarrier::complete_tx::bytes">();
  const int tensor = load ? 1 : 0, shared = load ? 0 : 1;
  const std::size_t multicast = in.info->has<"im2col">() ? 4 : 3;
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::optional<TensorMap> map = fetch_map(x, lane, address_operand(x, in, tensor, lane));
    const int given = in.info->count[static_cast<std::size_t>(tensor)] - 1;
    if (!map || !fits(x, in, lane, *map, given)) continue;
    TensorCopy c;
    c.map = *map;
    c.load = load;
    c.segments = segments_of(x, in, lane, *map, coordinates(x, in, tensor, lane));
    for (const Segment& segment : c.segments)
      c.bytes += segment.bytes;
    c.shared = address_operand(x, in, shared, lane);
    c.reduce = in.info->atom;
    if (load) c.mbarrier = address_operand(x, in, 2, lane);
    std::uint32_t ranks = 0;
    if (in.info->has<"multicast::cluster">()) {
      ranks =
          static_cast<std::uint32_t>(x.value(in.slot[in.info->start[multicast]], lane)) & 0xffff;
    }
    if (ranks == 0) issue(x, lane, c);
    for (; ranks != 0; ranks &= ranks - 1) {
      const auto rank = static_cast<std::uint64_t>(std::countr_zero(ranks));
      TensorCopy one = c;
      one.shared = (c.shared & 0xffffff) | rank << kRankShift;
      one.mbarrier = (c.mbarrier & 0xffffff) | rank << kRankShift;
      issue(x, lane, one);
    }
  }
  return Flow::next;
}

namespace {

/// The bytes of a map in shared or global memory, found for an edit.
bool edit_map(Exec& x, const Inst& in, unsigned lane, Space space, std::uint64_t at) {
  Located l;
  if (!locate(x, lane, space, at, 128, 64, Purpose::write, l)) return false;
  EncodedTensorMap bytes{};
  std::memcpy(bytes.data(), l.data, bytes.size());
  std::optional<TensorMap> map = decode_tensor_map(bytes);
  if (!map) {
    refuse(x, lane, Kind::illegal_instruction,
           "edits bytes that are no tensor map of the emulator");
    return false;
  }
  std::string_view field;
  for (const ptx::Mod mod : in.info->opcode->slots) {
    const std::string_view word = mod.id == 0 ? std::string_view{} : ptx::name(mod);
    const bool other = word.empty() || word == "replace" || word == "tile" || word == "global" ||
                       word == "shared::cta" || word.starts_with("b");
    if (!other || word == "box_dim") field = word;
  }
  const int operands = in.info->operands;
  const int ordinal =
      operands == 3 ? static_cast<int>(x.value(in.slot[in.info->start[1]], lane)) : 0;
  const std::uint64_t value =
      x.value(in.slot[in.info->start[static_cast<std::size_t>(operands - 1)]], lane);
  if (!replace_field(*map, field, ordinal, value)) {
    refuse(x, lane, Kind::illegal_instruction,
           "gives the field " + std::string(field) + " the value " + std::to_string(value));
    return false;
  }
  bytes = pack_tensor_map(*map);
  if (l.shadowed) {
    note_access(x, lane, l.target, at, 128, Access::write, Strength::weak, thread_actor(x, lane));
  }
  std::memcpy(l.data, bytes.data(), bytes.size());
  set_initialized(l, 0, 128, true);
  x.run->changed();
  return true;
}

}  // namespace

/// tensormap.replace, and tensormap.cp_fenceproxy as a copy of 128 bytes.
Flow exec_tensormap(Exec& x, const Inst& in) {
  if (in.info->has<"cp_fenceproxy">()) {
    if (gather_aligned(x) == Gather::wait) return Flow::stop;
    const std::uint64_t to = address_operand(x, in, 0, 0), from = address_operand(x, in, 1, 0);
    Block *none = nullptr, *owner = nullptr;
    if (!bulk_range(x, 0, Space::global, to, 128, 128, Purpose::write, &none) ||
        !bulk_range(x, 0, Space::shared, from, 128, 128, Purpose::read, &owner)) {
      return Flow::next;
    }
    note_bulk(x, 0, Space::shared, from, 128, Access::read, thread_actor(x, 0));
    note_bulk(x, 0, Space::global, to, 128, Access::write, thread_actor(x, 0));
    EncodedTensorMap bytes{};
    read_bytes(*x.run, owner, from, bytes);
    write_bytes(*x.run, nullptr, to, bytes);
    x.run->edited_maps.insert(to);
    return Flow::next;
  }
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    std::uint64_t at = address_operand(x, in, 0, lane);
    Space space = in.info->space;
    if (space == Space::generic) {
      space = space_of(at);
      if (space == Space::shared) at %= kWindowBytes;
    }
    if (edit_map(x, in, lane, space, at) && space == Space::global) x.run->edited_maps.insert(at);
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail

// SPDX-License-Identifier: Apache-2.0
// Tensor copies and what must be known of them when traced.
#include "tilewright/tma.h"

#include "lang/address.h"
#include "lang/reduction.h"
#include "lang/tensor_copy.h"

#include <string>
#include <vector>

namespace tilewright {
namespace {

using lang::Operands;
using lang::Tracer;

constexpr int kBoxAlignment = 128;  // bytes; PTX ISA, cp.async.bulk.tensor

void require_mode(const char* what, const TensorMapParam& map, bool im2col, SourceLoc at) {
  if (map.arg().im2col.has_value() == im2col) return;
  throw Error(ErrorKind::user,
              std::string(what) + (im2col ? ": the map is tiled; make it with im2col_arg()"
                                          : ": the map is in im2col mode; only "
                                            "tensor_load_im2col() takes it"),
              at);
}

/// [map, {coordinates}]
ptx::Operand map_operand(const char* what, const TensorMapParam& map, lang::Coordinates coordinates,
                         SourceLoc at, bool im2col = false) {
  Tracer& tracer = Tracer::current(what, at);
  require_mode(what, map, im2col, at);
  if (static_cast<int>(coordinates.size()) != map.rank()) {
    throw Error(ErrorKind::user,
                std::string(what) + ": " + std::to_string(coordinates.size()) +
                    " coordinates for a tensor map of rank " + std::to_string(map.rank()) +
                    "; give one a dimension, the innermost first",
                at);
  }
  std::vector<ptx::Operand> elems;
  for (const Arg& coordinate : coordinates) {
    Value value = coordinate.natural();
    if (!is_integer(value.type()) || bits(value.type()) != 32) {
      throw Error(ErrorKind::user,
                  std::string(what) + ": a coordinate has type " + std::string(name(value.type())) +
                      "; it must be s32 or u32",
                  at);
    }
    elems.push_back(ptx::reg(tracer.reg_of(value, at)));
  }
  ptx::Operand operand = ptx::address(tracer.reg_of(map.address(), at));
  operand.elems = std::move(elems);
  return operand;
}

ptx::Operand box_operand(const char* what, const TensorMapParam& map, const Element& box,
                         SourceLoc at) {
  if (box.tensor().space() != MemorySpace::shared || box.tensor().type() != map.type()) {
    throw Error(ErrorKind::user,
                std::string(what) + ": a box of " + std::string(name(box.tensor().type())) +
                    " in " + lang::space_word(box.tensor().space()) + " memory for a map of " +
                    std::string(name(map.type())) + "; it must be of that type in shared memory",
                at);
  }
  std::int64_t alignment = lang::known_alignment(box);
  if (alignment % kBoxAlignment != 0) {
    throw Error(ErrorKind::user,
                std::string(what) + ": the box is known to be aligned to " +
                    std::to_string(alignment) +
                    " bytes; it must be to 128: shared(type, layout, 128)",
                at);
  }
  return lang::address_operand(box, at);
}

std::string with_rank(const char* stem, const TensorMapParam& map, const char* rest) {
  return std::string(stem) + std::to_string(map.rank()) + "d" + rest;
}

}  // namespace

void tensor_prefetch(const TensorMapParam& map, SourceLoc at) {
  Tracer& tracer = Tracer::current("tensor_prefetch", at);
  tracer.emit("prefetch.tensormap", {ptx::address(tracer.reg_of(map.address(), at))}, at);
}

namespace lang {

void tensor_load(const CopyCall& call, const Element& destination, const TensorMapParam& map,
                 Coordinates coordinates, const Mbarrier& done) {
  Tracer& tracer = Tracer::current(call.what, call.at);
  ptx::Operand box = box_operand(call.what, map, destination, call.at);
  ptx::Operand source = map_operand(call.what, map, coordinates, call.at);
  std::vector<ptx::Operand> operands{box, source, address_operand(done.cell(), call.at)};
  std::string op =
      with_policy(with_rank("cp.async.bulk.tensor.", map,
                            ".shared::cluster.global.tile.mbarrier::complete_tx::bytes"),
                  call, operands);
  tracer.emit(op, std::move(operands), call.at);
}

void tensor_load_multicast(const char* what, const Element& destination, const TensorMapParam& map,
                           Coordinates coordinates, const Mbarrier& done, const Arg& blocks) {
  SourceLoc at = blocks.at();
  Tracer& tracer = Tracer::current(what, at);
  ptx::Operand box = box_operand(what, map, destination, at);
  ptx::Operand source = map_operand(what, map, coordinates, at);
  ptx::Operand mask = ptx::reg(tracer.reg_of(blocks.as(u16, what), at));
  tracer.emit(with_rank("cp.async.bulk.tensor.", map,
                        ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::"
                        "cluster"),
              {box, source, address_operand(done.cell(), at), mask}, at);
}

void tensor_store(const CopyCall& call, const TensorMapParam& map, Coordinates coordinates,
                  const Element& source) {
  Tracer& tracer = Tracer::current(call.what, call.at);
  ptx::Operand box = box_operand(call.what, map, source, call.at);
  std::vector<ptx::Operand> operands{map_operand(call.what, map, coordinates, call.at), box};
  std::string op =
      with_policy(with_rank("cp.async.bulk.tensor.", map, ".global.shared::cta.tile.bulk_group"),
                  call, operands);
  tracer.emit(op, std::move(operands), call.at);
}

}  // namespace lang

void tensor_load(const Element& destination, const TensorMapParam& map,
                 std::initializer_list<Arg> coordinates, const Mbarrier& done,
                 const BulkOptions& options, SourceLoc at) {
  lang::tensor_load({"tensor_load", at, options}, destination, map, coordinates, done);
}

void tensor_load_multicast(const Element& destination, const TensorMapParam& map,
                           std::initializer_list<Arg> coordinates, const Mbarrier& done,
                           const Arg& blocks) {
  lang::tensor_load_multicast("tensor_load_multicast", destination, map, coordinates, done, blocks);
}

void tensor_load_im2col(const Element& destination, const TensorMapParam& map,
                        std::initializer_list<Arg> coordinates, std::initializer_list<Arg> offsets,
                        const Mbarrier& done, SourceLoc at) {
  const char* what = "tensor_load_im2col";
  Tracer& tracer = Tracer::current(what, at);
  ptx::Operand box = box_operand(what, map, destination, at);
  ptx::Operand source = map_operand(what, map, coordinates, at, true);
  if (static_cast<int>(offsets.size()) != map.rank() - 2) {
    throw Error(ErrorKind::user,
                std::string(what) + ": " + std::to_string(offsets.size()) +
                    " offsets for a tensor map of rank " + std::to_string(map.rank()) +
                    "; give one for each dimension between channels and batch",
                at);
  }
  std::vector<ptx::Operand> moved;
  for (const Arg& offset : offsets)
    moved.push_back(ptx::reg(tracer.reg_of(offset.as(u16, what), at)));
  tracer.emit(with_rank("cp.async.bulk.tensor.", map,
                        ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes"),
              {box, source, lang::address_operand(done.cell(), at), ptx::vector(std::move(moved))},
              at);
}

void tensor_store(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                  const Element& source, const BulkOptions& options, SourceLoc at) {
  lang::tensor_store({"tensor_store", at, options}, map, coordinates, source);
}

void tensor_prefetch_box(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                         SourceLoc at) {
  const char* what = "tensor_prefetch_box";
  ptx::Operand source = map_operand(what, map, coordinates, at);
  Tracer::current(what, at).emit(
      with_rank("cp.async.bulk.prefetch.tensor.", map, ".L2.global.tile"), {source}, at);
}

namespace {

struct Reduction {
  const char* what;  // for errors
  const char* op;    // "add"
  Operands operands;
};

void tensor_reduce(const Reduction& reduction, const TensorMapParam& map,
                   lang::Coordinates coordinates, const Element& source, SourceLoc at) {
  if (lang::engine_word(reduction.operands, map.type()).empty()) {
    throw Error(ErrorKind::user,
                std::string(reduction.what) + ": not defined for " + std::string(name(map.type())) +
                    "; " + lang::engine_text(reduction.operands),
                at);
  }
  ptx::Operand box = box_operand(reduction.what, map, source, at);
  ptx::Operand destination = map_operand(reduction.what, map, coordinates, at);
  std::string end = std::string(".global.shared::cta.") + reduction.op + ".tile.bulk_group";
  Tracer::current(reduction.what, at)
      .emit(with_rank("cp.reduce.async.bulk.tensor.", map, end.c_str()), {destination, box}, at);
}

}  // namespace

void tensor_add(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at) {
  tensor_reduce({"tensor_add", "add", Operands::sum}, map, coordinates, source, at);
}
void tensor_min(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at) {
  tensor_reduce({"tensor_min", "min", Operands::order}, map, coordinates, source, at);
}
void tensor_max(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at) {
  tensor_reduce({"tensor_max", "max", Operands::order}, map, coordinates, source, at);
}
void tensor_and(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at) {
  tensor_reduce({"tensor_and", "and", Operands::bits}, map, coordinates, source, at);
}
void tensor_or(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
               const Element& source, SourceLoc at) {
  tensor_reduce({"tensor_or", "or", Operands::bits}, map, coordinates, source, at);
}
void tensor_xor(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at) {
  tensor_reduce({"tensor_xor", "xor", Operands::bits}, map, coordinates, source, at);
}

}  // namespace tilewright

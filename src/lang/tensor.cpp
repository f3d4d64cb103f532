// SPDX-License-Identifier: Apache-2.0
// Tensors, their slices and tiles, and shared-memory allocation.
#include "tilewright/tensor.h"

#include "lang/address.h"
#include "lang/facts.h"
#include "lang/tracer.h"
#include "tilewright/view.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace tilewright {

using lang::Tracer;

namespace {

std::int64_t largest_power_of_two(std::int64_t n) { return n == 0 ? 4096 : n & -n; }

int alignment_at(const Tensor& tensor, const Int& elements) {
  std::int64_t divisor = elements.divisor();  // 0 for a static zero
  std::int64_t offset_bytes = divisor * storage_bits(tensor.type()) / 8;
  return static_cast<int>(
      std::min<std::int64_t>(tensor.alignment_bytes(), largest_power_of_two(offset_bytes)));
}

void require_addressable(Type type, const char* what, SourceLoc at) {
  if (type == pred || type == none) {
    throw Error(ErrorKind::user,
                std::string(what) + ": elements of type " + std::string(name(type)) +
                    " are not addressable; use a type of 4 bits or more",
                at);
  }
}

/// What the layout algebra refuses, told at the user's line.
template <class F>
auto located(SourceLoc at, F&& compute) {
  try {
    return compute();
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), at);
  }
}

/// Refuses a coordinate that is sure to lie outside; what depends on the launch is not known here.
void require_inside(const Coord& coord, const Shape& shape, const Coord& whole,
                    const Tensor& tensor, SourceLoc at) {
  if (coord.is_underscore()) return;
  if (coord.is_tuple()) {
    if (!shape.is_tuple() || shape.rank() != coord.rank()) {
      throw Error(ErrorKind::user,
                  "tensor: coordinate " + to_string(whole) + " does not fit shape " +
                      to_string(tensor.shape()) +
                      "; give one index for each mode, or a single linear one",
                  at);
    }
    for (int i = 0; i < coord.rank(); ++i)
      require_inside(coord[i], shape[i], whole, tensor, at);
    return;
  }
  const Int& index = coord.value(at);
  Int extent = size(shape);
  if (index.max() >= 0 && index.min() < extent.max()) return;
  throw Error(ErrorKind::user,
              "tensor: coordinate " + to_string(whole) + " lies outside of shape " +
                  to_string(tensor.shape()) + "; indices count from 0",
              at);
}

/// A single index of a tensor of several modes is linear: CuTe's rule.
const Coord& unwrapped(const Coord& coord, const Tensor& tensor) {
  bool linear = coord.is_tuple() && coord.rank() == 1 && tensor.layout().rank() != 1;
  return linear ? coord[0] : coord;
}

}  // namespace

Tensor::Tensor(Type type, MemorySpace space, const Value& base, Layout layout, int alignment_bytes)
    : type_(type),
      space_(space),
      base_(base),
      layout_(std::move(layout)),
      alignment_bytes_(alignment_bytes) {}

Tensor Tensor::with_layout(Layout layout) const {
  return {type_, space_, base_, std::move(layout), alignment_bytes_};
}

Tensor Tensor::at_offset(const Int& elements, Layout layout, SourceLoc at) const {
  Value moved = lang::address_of(*this, elements, at);
  return {type_, space_, moved, std::move(layout), alignment_at(*this, elements)};
}

Tensor Tensor::slice(const Coord& coord, SourceLoc at) const {
  require_inside(coord, layout_.shape(), coord, *this, at);
  OffsetLayout kept = located(at, [&] { return slice_and_offset(coord, layout_); });
  return at_offset(kept.offset, std::move(kept.layout), at);
}

Element Tensor::element(const Coord& coord, SourceLoc at) const {
  const Coord& whole = unwrapped(coord, *this);
  require_inside(whole, layout_.shape(), whole, *this, at);
  return located(at, [&] { return Element(*this, layout_(whole), at); });
}

Element::Element(const Tensor& tensor, Int offset, SourceLoc at)
    : tensor_(tensor), offset_(std::move(offset)), at_(at) {}

Value Element::address() const { return lang::address_of(tensor_, offset_, at_); }

namespace {

/// Refuses a tile that is known to lie outside: where there is one tile along a mode, its stride is
/// 0, and any other would be that one again.
void require_tile(const Tensor& tensor, const Shape& tile, const Coord& at_block, SourceLoc at) {
  if (tile.rank() > tensor.shape().rank()) {
    throw Error(ErrorKind::user,
                "local_tile: the tile " + to_string(tile) + " has more modes than the tensor's " +
                    to_string(tensor.shape()) + "; give one extent a mode",
                at);
  }
  if (!at_block.is_tuple() || !tile.is_tuple()) return;
  for (int i = 0; i < std::min({at_block.rank(), tile.rank(), tensor.shape().rank()}); ++i) {
    if (!at_block[i].is_int() || !tile[i].is_int()) continue;
    Int extent = size(tensor.shape()[i]);
    Int index = at_block[i].value(at);
    if (!extent.is_static() || !tile[i].value(at).is_static() || tile[i].value(at).min() < 1)
      continue;
    std::int64_t tiles = ceil_div(extent, tile[i].value(at)).value(at);
    if (index.max() >= 0 && index.min() < tiles) continue;
    throw Error(ErrorKind::user,
                "local_tile: the coordinate " + to_string(at_block) + " lies outside: mode " +
                    std::to_string(i) + " of " + to_string(tensor.shape()) + " has " +
                    std::to_string(tiles) + (tiles == 1 ? " tile of " : " tiles of ") +
                    to_string(tile[i]) + "; they count from 0",
                at);
  }
}

}  // namespace

Tensor local_tile(const Tensor& tensor, const Shape& tile, const Coord& at_block, SourceLoc at) {
  require_tile(tensor, tile, at_block, at);
  OffsetLayout cut =
      located(at, [&] { return local_tile(tensor.layout(), Tiler(tile), at_block); });
  return tensor.at_offset(cut.offset, std::move(cut.layout), at);
}

namespace {

constexpr std::int64_t kStaticSharedBytes = 48 * 1024;  // PTX ISA: what ptxas accepts, any target
// 227 KiB, the most that a block can opt in to (CUDA Programming Guide, compute capability 9.0).
constexpr std::int64_t kDynamicSharedBytes = 227 * 1024;

void require_power_of_two(int alignment_bytes, const char* what, SourceLoc at) {
  if (alignment_bytes > 0 && (alignment_bytes & (alignment_bytes - 1)) == 0) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": the alignment is " + std::to_string(alignment_bytes) +
                  " bytes; it must be a power of two",
              at);
}

void require_static_room(Tracer& tracer, std::int64_t size_bytes, SourceLoc at) {
  std::int64_t taken = 0;
  for (const ptx::Variable& variable : tracer.function().variables) {
    if (variable.space == ptx::Space::shared) taken += ptx::size_bytes(variable);
  }
  if (size_bytes >= 0 && size_bytes <= kStaticSharedBytes - taken) return;
  throw Error(ErrorKind::user,
              "shared: " + std::to_string(size_bytes) + " bytes beside " + std::to_string(taken) +
                  " that are taken; a block has " + std::to_string(kStaticSharedBytes) +
                  " bytes of static shared memory, use dynamic_shared() for more",
              at);
}

std::int64_t bytes_of(Type type, const Layout& layout) {
  return (cosize(layout).value() * storage_bits(type) + 7) / 8;
}

void require_dynamic_room(Type type, const Layout& layout, std::int64_t offset_bytes,
                          SourceLoc at) {
  if (!layout.is_static()) {
    throw Error(ErrorKind::user,
                "dynamic_shared: the layout " + to_string(layout) +
                    " has dynamic parts; shared memory needs a static layout, of host numbers",
                at);
  }
  if (offset_bytes < 0 || offset_bytes % bytes(type) != 0) {
    throw Error(ErrorKind::user,
                "dynamic_shared: offset " + std::to_string(offset_bytes) +
                    " bytes; it must be a multiple of the " + std::to_string(bytes(type)) +
                    " bytes of " + std::string(name(type)),
                at);
  }
  std::int64_t end = offset_bytes + bytes_of(type, layout);
  if (end <= kDynamicSharedBytes) return;
  throw Error(ErrorKind::user,
              "dynamic_shared: the tensor ends at byte " + std::to_string(end) +
                  "; a block has at most " + std::to_string(kDynamicSharedBytes) +
                  " bytes of shared memory",
              at);
}

}  // namespace

Tensor shared(Type type, const Layout& layout, int alignment_bytes, SourceLoc at) {
  require_addressable(type, "shared", at);
  Tracer& tracer = Tracer::current("shared", at);
  require_power_of_two(alignment_bytes, "shared", at);
  if (!layout.is_static()) {
    throw Error(ErrorKind::user,
                "shared: the layout " + to_string(layout) +
                    " has dynamic parts; shared memory needs a static layout, of host numbers",
                at);
  }
  std::int64_t size = bytes_of(type, layout);
  require_static_room(tracer, size, at);
  ptx::Variable variable;
  variable.space = ptx::Space::shared;
  variable.type = b8;
  variable.alignment = std::max(alignment_bytes, bytes(type));
  variable.name =
      tracer.function().name + "_smem" + std::to_string(tracer.function().variables.size());
  variable.extents = {size};
  ptx::SymbolId id = tracer.module().symbol_id(variable.name);
  int alignment = variable.alignment;
  tracer.function().variables.push_back(std::move(variable));
  Value base = lang::shared_symbol(tracer, id, alignment, at);
  return {type, MemorySpace::shared, base, layout, alignment};
}

Tensor dynamic_shared(Type type, const Layout& layout, std::int64_t offset_bytes, SourceLoc at) {
  require_addressable(type, "dynamic_shared", at);
  constexpr int kAlignment = 1024;  // what the widest swizzle wants
  Tracer& tracer = Tracer::current("dynamic_shared", at);
  require_dynamic_room(type, layout, offset_bytes, at);
  const std::string symbol_name = "tilewright_dynamic_smem";
  ptx::SymbolId id = tracer.module().symbol_id(symbol_name);
  auto& variables = tracer.module().variables;
  bool declared = std::any_of(variables.begin(), variables.end(),
                              [&](const ptx::Variable& v) { return v.name == symbol_name; });
  if (!declared) {
    ptx::Variable variable;
    variable.space = ptx::Space::shared;
    variable.linkage = ptx::Linkage::extern_;
    variable.alignment = kAlignment;
    variable.name = symbol_name;
    variable.extents = {0};
    variables.push_back(std::move(variable));
  }
  Value start = lang::shared_symbol(tracer, id, kAlignment, at);
  Value base = Arg(start, at) + offset_bytes;
  auto alignment =
      static_cast<int>(std::min<std::int64_t>(kAlignment, largest_power_of_two(offset_bytes)));
  return {type, MemorySpace::shared, base, layout, alignment};
}

}  // namespace tilewright

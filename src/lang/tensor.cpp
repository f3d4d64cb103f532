// SPDX-License-Identifier: Apache-2.0
// Tensors, their slices and tiles, and shared-memory allocation.
#include "tilewright/tensor.h"

#include "lang/address.h"
#include "lang/facts.h"
#include "lang/tracer.h"

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
  std::int64_t offset_bytes = divisor * std::max(bits(tensor.type()), 8) / 8;
  return static_cast<int>(
      std::min<std::int64_t>(tensor.alignment_bytes(), largest_power_of_two(offset_bytes)));
}

void require_bytes(Type type, const char* what, SourceLoc at) {
  if (type == pred || type == none || bits(type) < 8) {
    throw Error(ErrorKind::user,
                std::string(what) + ": elements of type " + std::string(name(type)) +
                    " are not addressable; use the packed type of 8 bits or more",
                at);
  }
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
  OffsetLayout kept = slice_and_offset(coord, layout_);
  return at_offset(kept.offset, std::move(kept.layout), at);
}

Element Tensor::element(const Coord& coord, SourceLoc at) const {
  // A single index of a tensor of several modes is linear: CuTe's rule.
  const Coord& whole =
      coord.is_tuple() && coord.rank() == 1 && layout_.rank() != 1 ? coord[0] : coord;
  return {*this, layout_(whole), at};
}

Element::Element(const Tensor& tensor, Int offset, SourceLoc at)
    : tensor_(tensor), offset_(std::move(offset)), at_(at) {}

Value Element::address() const { return lang::address_of(tensor_, offset_, at_); }

Tensor local_tile(const Tensor& tensor, const Shape& tile, const Coord& at_block, SourceLoc at) {
  OffsetLayout cut = local_tile(tensor.layout(), Tiler(tile), at_block);
  return tensor.at_offset(cut.offset, std::move(cut.layout), at);
}

Tensor shared(Type type, const Layout& layout, int alignment_bytes, SourceLoc at) {
  require_bytes(type, "shared", at);
  Tracer& tracer = Tracer::current("shared", at);
  Int extent = cosize(layout);
  if (!layout.is_static()) {
    throw Error(ErrorKind::user,
                "shared: the layout " + to_string(layout) +
                    " has dynamic parts; shared memory needs a static layout, or dynamic_shared()",
                at);
  }
  std::int64_t size = extent.value() * bytes(type);
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
  require_bytes(type, "dynamic_shared", at);
  constexpr int kAlignment = 1024;  // what the widest swizzle wants
  Tracer& tracer = Tracer::current("dynamic_shared", at);
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

// SPDX-License-Identifier: Apache-2.0
// Traced tensors: an address in global or shared memory with a layout, its elements and its tiles.
#pragma once

#include "tilewright/layout.h"
#include "tilewright/value.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>

namespace tilewright {

/// `cluster`: shared memory of a block of the cluster, by peer().
enum class MemorySpace : std::uint8_t { global, shared, cluster };

/// How a load or store treats the caches (PTX ISA, cache operators and eviction priority).
enum class Cache : std::uint8_t {
  all,          ///< the default: L1 and L2
  global,       ///< .cg: L2 only
  streaming,    ///< .cs: likely to be used once
  no_allocate,  ///< .L1::no_allocate
  evict_first,  ///< .L1::evict_first: the first of L1's lines to go
  evict_last,   ///< .L1::evict_last
  volatile_,    ///< .volatile: ptxas keeps it where it stands among other volatile accesses
};
/// `read_only` (.nc) is a promise that nothing writes the bytes while the kernel runs; `policy` is
/// a cache_policy() for L2.
struct LoadOptions {
  Cache cache = Cache::all;
  bool read_only = false;
  std::optional<Value> policy{};
};
struct StoreOptions {
  Cache cache = Cache::all;
  std::optional<Value> policy{};
};

/// One component of a coordinate: a number, a value, `_`, or a nested coordinate.
class Index {
 public:
  // NOLINTBEGIN(google-explicit-constructor): coordinates are written as plain arguments
  template <std::integral T>
  Index(T value) : coord_(static_cast<std::int64_t>(value)) {}
  Index(const Int& value) : coord_(value) {}
  Index(const IntTuple& coord) : coord_(coord) {}
  Index(Underscore whole) : coord_(whole) {}
  Index(const Value& value, SourceLoc at = SourceLoc::here());
  Index(const Var& value, SourceLoc at = SourceLoc::here());
  Index(std::initializer_list<Index> nested);
  // NOLINTEND(google-explicit-constructor)
  const IntTuple& coord() const { return coord_; }

 private:
  IntTuple coord_;
};
/// A nested coordinate: coord(block_idx().y, {1, _}).
IntTuple coord(std::initializer_list<Index> indices);
// Of these arities, so that each Index takes the line of the call.
inline IntTuple coord() { return coord(std::initializer_list<Index>{}); }
inline IntTuple coord(const Index& a) { return coord({a}); }
inline IntTuple coord(const Index& a, const Index& b) { return coord({a, b}); }
inline IntTuple coord(const Index& a, const Index& b, const Index& c) { return coord({a, b, c}); }
inline IntTuple coord(const Index& a, const Index& b, const Index& c, const Index& d) {
  return coord({a, b, c, d});
}

/// A value as an integer of the layout algebra, and back. An Int is materialised in s32 where its
/// bounds fit, else in s64.
Int to_int(const Value& value, SourceLoc at = SourceLoc::here());
Value to_value(const Int& value, SourceLoc at = SourceLoc::here());

class Element;

/// A traced tensor: base address, element type, layout.
class Tensor {
 public:
  /// `base` is a byte address: u64 for global, else u32.
  Tensor(Type type, MemorySpace space, const Value& base, Layout layout, int alignment_bytes);

  Type type() const { return type_; }
  MemorySpace space() const { return space_; }
  const Layout& layout() const { return layout_; }
  const Shape& shape() const { return layout_.shape(); }
  /// Known alignment of the first element's address.
  int alignment_bytes() const { return alignment_bytes_; }
  const Value& base() const { return base_; }

  /// With a `_` in the coordinate the sub-tensor that it keeps, else the element. For more than
  /// four modes: element(coord({...})) and slice(coord({...})).
  template <class I>
  auto operator()(const I& i, SourceLoc at = SourceLoc::here()) const {
    return pick<I>({index(i, at)}, at);
  }
  template <class I, class J>
  auto operator()(const I& i, const J& j, SourceLoc at = SourceLoc::here()) const {
    return pick<I, J>({index(i, at), index(j, at)}, at);
  }
  template <class I, class J, class K>
  auto operator()(const I& i, const J& j, const K& k, SourceLoc at = SourceLoc::here()) const {
    return pick<I, J, K>({index(i, at), index(j, at), index(k, at)}, at);
  }
  template <class I, class J, class K, class L>
  auto operator()(const I& i, const J& j, const K& k, const L& l,
                  SourceLoc at = SourceLoc::here()) const {
    return pick<I, J, K, L>({index(i, at), index(j, at), index(k, at), index(l, at)}, at);
  }
  Tensor slice(const Coord& coord, SourceLoc at = SourceLoc::here()) const;
  Element element(const Coord& coord, SourceLoc at = SourceLoc::here()) const;
  /// The tensor that starts `elements` further on, with another layout.
  Tensor at_offset(const Int& elements, Layout layout, SourceLoc at = SourceLoc::here()) const;
  /// The same bytes with another layout.
  Tensor with_layout(Layout layout) const;

 private:
  template <class I>
  static Index index(const I& value, SourceLoc at) {
    if constexpr (std::is_constructible_v<Index, const I&, SourceLoc>) {
      return Index(value, at);
    } else {
      return Index(value);
    }
  }
  template <class... I>
  auto pick(std::initializer_list<Index> indices, SourceLoc at) const;

  Type type_;
  MemorySpace space_;
  Value base_;
  Layout layout_;
  int alignment_bytes_;
};

/// One element of a tensor in memory: converts to a Value by loading, `=` stores.
class Element {
 public:
  Element(const Tensor& tensor, Int offset, SourceLoc at);
  Value load(const LoadOptions& options = {}) const;
  void store(const Arg& value, const StoreOptions& options = {}) const;
  operator Value() const { return load(); }           // NOLINT(google-explicit-constructor)
  operator Arg() const { return Arg(load(), at_); }   // NOLINT(google-explicit-constructor)
  const Element& operator=(const Arg& value) const {  // NOLINT(misc-unconventional-assign-operator)
    store(value);
    return *this;
  }
  const Element& operator=(const Element& other) const { return *this = Arg(other.load(), at_); }
  Element(const Element&) = default;
  ~Element() = default;
  /// Its byte address: u64 (global) or u32.
  Value address() const;
  const Tensor& tensor() const { return tensor_; }
  const Int& offset() const { return offset_; }

 private:
  Tensor tensor_;
  Int offset_;
  SourceLoc at_;
};

// Out of the class for clang 14, which wants Element to be complete here.
template <class... I>
auto Tensor::pick(std::initializer_list<Index> indices, SourceLoc at) const {
  if constexpr ((std::is_same_v<I, Underscore> || ...)) {
    return slice(coord(indices), at);
  } else {
    return element(coord(indices), at);
  }
}

/// The tile of shape `tile` at block coordinate `at` of the tensor. The block's offset goes into
/// the base address once; offsets inside are static where the tensor's strides are.
Tensor local_tile(const Tensor& tensor, const Shape& tile, const Coord& at_block,
                  SourceLoc at = SourceLoc::here());

/// Shared memory of the block for a static layout: `alignment_bytes` at least the type's.
Tensor shared(Type type, const Layout& layout, int alignment_bytes = 16,
              SourceLoc at = SourceLoc::here());
/// Dynamic shared memory of the launch as bytes, shared by all that ask: tensors in it start at
/// `offset_bytes`.
Tensor dynamic_shared(Type type, const Layout& layout, std::int64_t offset_bytes = 0,
                      SourceLoc at = SourceLoc::here());

}  // namespace tilewright

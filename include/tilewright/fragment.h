// SPDX-License-Identifier: Apache-2.0
// Fragments: a thread's elements in registers, indexed by constants of the trace.
#pragma once

#include "tilewright/tensor.h"
#include "tilewright/value.h"

#include <cstdint>
#include <vector>

namespace tilewright {

/// `size` registers' worth of elements of one type, those of 4 to 16 bits packed into words: two of
/// 16 bits, four of 8 and 6, eight of 4.
/// Copies share the registers, as copies of a Tensor share memory: clone() makes new ones.
class Fragment {
 public:
  /// Undefined, but for words that pack several elements, which are 0: elements go into them.
  Fragment(Type type, int size, SourceLoc at = SourceLoc::here());
  /// Wholly undefined: for instructions that write whole words.
  static Fragment undefined(Type type, int size, SourceLoc at = SourceLoc::here());

  Type type() const { return type_; }
  int size() const { return size_; }

  class Slot {
   public:
    Slot(const Fragment& fragment, int index, SourceLoc at);
    Value get() const;
    operator Value() const { return get(); }        // NOLINT(google-explicit-constructor)
    operator Arg() const;                           // NOLINT(google-explicit-constructor)
    const Slot& operator=(const Arg& value) const;  // NOLINT(misc-unconventional-assign-operator)
    const Slot& operator=(const Slot& other) const { return *this = Arg(other.get(), at_); }
    Slot(const Slot&) = default;
    ~Slot() = default;

   private:
    const Fragment& fragment_;
    int index_;
    SourceLoc at_;
  };
  /// A constant of the trace, with the line where it is written.
  struct Position {
    template <std::integral T>
    // NOLINTNEXTLINE(google-explicit-constructor): elements are indexed by plain numbers
    Position(T number, SourceLoc line = SourceLoc::here())
        : index(static_cast<int>(number)), at(line) {}
    int index;
    SourceLoc at;
  };
  Slot operator[](Position position) const { return Slot(*this, position.index, position.at); }
  Slot at(int index, SourceLoc where = SourceLoc::here()) const {
    return Slot(*this, index, where);
  }

  void fill(const Arg& value) const;
  Fragment clone(SourceLoc at = SourceLoc::here()) const;
  /// Copies the elements of `other`. Pre: the same type and size.
  void assign(const Fragment& other, SourceLoc at = SourceLoc::here()) const;
  /// Every element converted as Value::to does, several at a time where they share a register.
  Fragment to(Type type, SourceLoc at = SourceLoc::here()) const;
  /// The same for elements known to lie within a type of 8 bits or less, half a step beyond its
  /// largest number excluded: saves the limits where the target has no instruction. Others give
  /// codes of no meaning.
  Fragment to_within(Type type, SourceLoc at = SourceLoc::here()) const;
  /// The same registers as elements of another type. Pre: whole elements; 64-bit types stay such.
  Fragment recast(Type type, SourceLoc at = SourceLoc::here()) const;
  /// Codes of e2m1 of 64 times the elements, which are f32 of magnitudes under 7 / 64: what costs
  /// targets without the instruction least, by way of e4m3.
  Fragment e2m1_of_64ths(SourceLoc at = SourceLoc::here()) const;
  /// Codes of e2m1 of the elements, in f32, times `factor`: of the exact products, which are not
  /// rounded before, at no cost by way of e4m3. Pre: factor is 2^-16, or up to 2^-25 below it, and
  /// the products' magnitudes are under 7.
  Fragment e2m1_of_products(float factor, SourceLoc at = SourceLoc::here()) const;
  /// Elements [begin, begin + count). Pre: whole words.
  Fragment part(int begin, int count, SourceLoc at = SourceLoc::here()) const;

  /// Registers of the packed words, for instructions that take them.
  const std::vector<std::uint32_t>& words(SourceLoc at = SourceLoc::here()) const {
    require_role(at);
    return words_;
  }
  int elements_per_word() const { return per_word_; }

 private:
  friend class Slot;
  Fragment(Type type, int size, std::vector<std::uint32_t> words, int number);
  /// Throws Error(user) if a role branch lies between its making and here: see roles().
  void require_role(SourceLoc at) const;
  Type type_;
  int size_;
  int per_word_;
  int number_;                        // of the trace's fragments, in the order of their making
  std::vector<std::uint32_t> words_;  // b32 registers, or b64 for types of 64 bits
};

/// combine(element) for every element, as a new fragment of the result's type.
template <class F>
Fragment map(const Fragment& a, F&& function, SourceLoc at = SourceLoc::here()) {
  Value first = function(a.at(0, at).get());
  Fragment out(first.type(), a.size(), at);
  out.at(0, at) = Arg(std::move(first), at);
  for (int i = 1; i < a.size(); ++i)
    out.at(i, at) = Arg(function(a.at(i, at).get()), at);
  return out;
}
/// function(a[i], b[i]). Pre: equal sizes.
template <class F>
Fragment zip_map(const Fragment& a, const Fragment& b, F&& function,
                 SourceLoc at = SourceLoc::here()) {
  Value first = function(a.at(0, at).get(), b.at(0, at).get());
  Fragment out(first.type(), a.size(), at);
  out.at(0, at) = Arg(std::move(first), at);
  for (int i = 1; i < a.size(); ++i) {
    out.at(i, at) = Arg(function(a.at(i, at).get(), b.at(i, at).get()), at);
  }
  return out;
}
Fragment operator+(const Fragment& a, const Fragment& b);
Fragment operator-(const Fragment& a, const Fragment& b);
Fragment operator*(const Fragment& a, const Fragment& b);
Fragment operator*(const Fragment& a, const Arg& b);
Fragment operator+(const Fragment& a, const Arg& b);

/// Combines all elements in a fixed tree: neighbours first. Pre: at least one element.
template <class Combine>
Value reduce(const Fragment& a, Combine&& combine, SourceLoc at = SourceLoc::here()) {
  std::vector<Value> level;
  level.reserve(static_cast<std::size_t>(a.size()));
  for (int i = 0; i < a.size(); ++i)
    level.push_back(a.at(i, at).get());
  while (level.size() > 1) {
    std::vector<Value> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2)
      next.push_back(combine(level[i], level[i + 1]));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level.swap(next);
  }
  return level.front();
}

/// The largest |x| of the elements of a real type, as f32; NaN if one is. 16-bit types go by pairs.
Value largest_magnitude(const Fragment& elements, SourceLoc at = SourceLoc::here());

/// Reads `count` consecutive elements from `first` on with the fewest instructions that the known
/// alignment allows, at most 16 bytes each. With a predicate, nothing is read where it is
/// false and the elements are 0.
Fragment load(const Element& first, int count, const LoadOptions& options = {},
              SourceLoc at = SourceLoc::here());
Fragment load_if(const Arg& predicate, const Element& first, int count,
                 const LoadOptions& options = {});
void store(const Element& first, const Fragment& fragment, const StoreOptions& options = {},
           SourceLoc at = SourceLoc::here());
void store_if(const Arg& predicate, const Element& first, const Fragment& fragment,
              const StoreOptions& options = {});

/// Starts an asynchronous copy of 4, 8 or 16 bytes from global to shared memory (cp.async). With a
/// predicate, zeros are written where it is false.
void copy_async(const Element& destination, const Element& source, int bytes,
                SourceLoc at = SourceLoc::here());
void copy_async_if(const Arg& predicate, const Element& destination, const Element& source,
                   int bytes);

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Loads, stores and asynchronous copies, with the widest vectors that alignment allows.
#include "lang/address.h"
#include "lang/tracer.h"
#include "tilewright/fragment.h"
#include "tilewright/view.h"

#include <algorithm>
#include <span>
#include <string>

namespace tilewright {

using lang::known_alignment;
using lang::space_word;
using lang::Tracer;

namespace {

/// ".cg" stands before ".nc", ".L1::no_allocate" behind it.
const char* cache_operator(Cache cache) {
  return cache == Cache::global ? ".cg" : cache == Cache::streaming ? ".cs" : "";
}

const char* l1_priority(Cache cache) {
  switch (cache) {
    case Cache::no_allocate:
      return ".L1::no_allocate";
    case Cache::evict_first:
      return ".L1::evict_first";
    case Cache::evict_last:
      return ".L1::evict_last";
    case Cache::all:
    case Cache::global:
    case Cache::streaming:
    case Cache::volatile_:
      return "";
  }
  return "";
}

std::string load_op(const Tensor& tensor, const LoadOptions& options) {
  std::string space = space_word(tensor.space());
  if (options.cache == Cache::volatile_) return "ld.volatile." + space;
  if (tensor.space() != MemorySpace::global) return "ld." + space;
  std::string op = "ld.global" + std::string(cache_operator(options.cache));
  if (options.read_only) op += ".nc";
  op += l1_priority(options.cache);
  return options.policy ? op + ".L2::cache_hint" : op;
}

std::string store_op(const Tensor& tensor, const StoreOptions& options) {
  std::string space = space_word(tensor.space());
  if (options.cache == Cache::volatile_) return "st.volatile." + space;
  if (tensor.space() != MemorySpace::global) return "st." + space;
  std::string op = "st.global" + std::string(cache_operator(options.cache));
  op += l1_priority(options.cache);
  return options.policy ? op + ".L2::cache_hint" : op;
}

/// The policy as an operand, if there is one.
std::optional<ptx::Operand> hint_of(const std::optional<Value>& policy, const Tensor& tensor,
                                    Cache cache, const char* what, SourceLoc at) {
  if (!policy) return std::nullopt;
  bool fits =
      policy->type() == b64 && tensor.space() == MemorySpace::global && cache != Cache::volatile_;
  if (!fits) {
    throw Error(ErrorKind::user,
                std::string(what) + ": a policy of type " + std::string(name(policy->type())) +
                    " for " + (cache == Cache::volatile_ ? "volatile " : "") +
                    space_word(tensor.space()) +
                    " memory; it must come from cache_policy(), for global memory that is not "
                    "volatile",
                at);
  }
  return ptx::reg(Tracer::current(what, at).reg_of(*policy, at));
}

std::string bits_suffix(int width) { return ".b" + std::to_string(width); }

Uniformity loaded_uniformity(const Element& element, LoadOptions options) {
  Uniformity where = element.tensor().base().uniformity();
  if (!element.offset().is_static()) {
    where = std::max(where, to_value(element.offset()).uniformity());
  }
  // Warps may read at different times: of bytes that something may write, the same address promises
  // the same value in a warp only.
  return options.read_only ? where : std::max(where, Uniformity::warp);
}

enum class Way : std::uint8_t { load, store };

/// What the instructions of one load or store have in common.
struct Access {
  Way way;
  std::string op;  ///< without vector and type
  const Tensor& tensor;
  std::optional<ptx::Guard> guard;
  std::optional<ptx::Operand> hint;
  SourceLoc at;
};

Access loading(const Tensor& tensor, const LoadOptions& options,
               const std::optional<ptx::Guard>& guard, SourceLoc at) {
  return {Way::load,
          load_op(tensor, options),
          tensor,
          guard,
          hint_of(options.policy, tensor, options.cache, "load", at),
          at};
}

Access storing(const Tensor& tensor, const StoreOptions& options,
               const std::optional<ptx::Guard>& guard, SourceLoc at) {
  return {Way::store,
          store_op(tensor, options),
          tensor,
          guard,
          hint_of(options.policy, tensor, options.cache, "store", at),
          at};
}

/// One instruction, `offset` elements from the tensor's base, of registers of `width` bits.
void access(const Access& how, const Int& offset, std::span<const std::uint32_t> registers,
            int width) {
  Tracer& tracer = Tracer::current(how.way == Way::load ? "load" : "store", how.at);
  std::string op = how.op;
  if (registers.size() > 1) op += ".v" + std::to_string(registers.size());
  op += bits_suffix(width);
  ptx::Operand address = lang::address_operand(how.tensor, offset, how.at);
  ptx::Operand data = ptx::reg(registers[0]);
  if (registers.size() > 1) {
    std::vector<ptx::Operand> elems;
    elems.reserve(registers.size());
    for (std::uint32_t reg : registers)
      elems.push_back(ptx::reg(reg));
    data = ptx::vector(std::move(elems));
  }
  std::vector<ptx::Operand> operands{data, address};
  if (how.way == Way::store) std::swap(operands[0], operands[1]);
  if (how.hint) operands.push_back(*how.hint);
  tracer.emit(op, std::move(operands), how.at).guard = how.guard;
}

/// Moves a fragment's words to or from memory, splitting where the alignment asks for it.
void transfer(const Access& how, const Element& first, const Fragment& fragment) {
  std::int64_t alignment = known_alignment(first);
  int type_bits = storage_bits(fragment.type());
  int word_bits = std::max(type_bits, 32);
  int total_bits = fragment.size() * type_bits;
  if (alignment * 8 < word_bits || total_bits % word_bits != 0) {
    throw Error(ErrorKind::internal, "transfer handles whole aligned words only", how.at);
  }
  int per_access =
      std::max(1, static_cast<int>(std::min<std::int64_t>(alignment, 16)) * 8 / word_bits);
  std::span<const std::uint32_t> words = fragment.words(how.at);
  for (int i = 0; i < static_cast<int>(words.size());) {
    int left = static_cast<int>(words.size()) - i;
    int count = per_access;
    while (count > left)
      count /= 2;
    Int offset = first.offset() + Int(std::int64_t{i} * fragment.elements_per_word());
    access(how, offset, words.subspan(static_cast<std::size_t>(i), static_cast<std::size_t>(count)),
           word_bits);
    i += count;
  }
}

bool in_words(const Element& first, Type type, int count) {
  int word_bits = std::max(bits(type), 32);
  return known_alignment(first) * 8 >= word_bits && count * storage_bits(type) % word_bits == 0;
}

std::optional<ptx::Guard> guard_of(const Arg& predicate, const char* what, bool& never) {
  Value p = predicate.as(pred, what);
  never = p.is_constant() && p.constant() == 0;
  if (p.is_constant()) return std::nullopt;
  return ptx::Guard{Tracer::current(what, predicate.at()).reg_of(p, predicate.at()), false};
}

void require_access(const char* what, Type type, const LoadOptions& options, SourceLoc at) {
  if (type == pred || storage_bits(type) < 8 || bits(type) > 64) {
    throw Error(ErrorKind::user,
                std::string(what) + ": elements of type " + std::string(name(type)) +
                    " are not addressable one by one; use a type of 8 to 64 bits, or load() and "
                    "store() of several elements of 4 bits",
                at);
  }
  if (options.read_only && options.cache == Cache::volatile_) {
    throw Error(ErrorKind::user,
                std::string(what) +
                    ": read_only promises that nothing writes the bytes, volatile_ that something "
                    "does; choose one",
                at);
  }
}

Value load_one(const Element& element, const Int& offset, const LoadOptions& options,
               const std::optional<ptx::Guard>& guard, SourceLoc at) {
  Tracer& tracer = Tracer::current("load", at);
  Type type = element.tensor().type();
  require_access("load", type, options, at);
  ptx::RegId reg = tracer.new_reg(type);
  if (guard) tracer.emit(lang::move_of(type), {ptx::reg(reg), ptx::imm(0)}, at);
  const Tensor& tensor = element.tensor();
  access(loading(tensor, options, guard, at), offset, {&reg, 1}, storage_bits(type));
  return tracer.result(type, reg, guard ? Uniformity::thread : loaded_uniformity(element, options));
}

void fill_zero(const Fragment& fragment, SourceLoc at) {
  Tracer& tracer = Tracer::current("load", at);
  const char* move = bits(fragment.type()) == 64 ? "mov.b64" : "mov.b32";
  for (std::uint32_t word : fragment.words(at))
    tracer.emit(move, {ptx::reg(word), ptx::imm(0)}, at);
}

/// The bytes under `count` elements of a 4-bit type.
Element byte_element(const char* what, const Element& first, int count, SourceLoc at) {
  Type type = first.tensor().type();
  if (count % 2 != 0) {
    throw Error(ErrorKind::user,
                std::string(what) + ": " + std::to_string(count) + " elements of type " +
                    std::string(name(type)) + " end within a byte; take an even number",
                at);
  }
  const Tensor& tensor = first.tensor();
  Tensor whole(u8, tensor.space(), tensor.base(), tensor.layout(), tensor.alignment_bytes());
  return {whole, lang::addressable_offset(type, first.offset(), at), at};
}

Fragment load_guarded(const std::optional<ptx::Guard>& guard, const Element& first, int count,
                      const LoadOptions& options, SourceLoc at) {
  Type type = first.tensor().type();
  if (storage_bits(type) == 4) {
    Element begin = byte_element("load", first, count, at);
    return load_guarded(guard, begin, count / 2, options, at).recast(type, at);
  }
  require_access("load", type, options, at);
  if (!in_words(first, type, count)) {
    Fragment fragment(type, count, at);
    for (int i = 0; i < count; ++i) {
      fragment.at(i, at) = Arg(load_one(first, first.offset() + Int(i), options, guard, at), at);
    }
    return fragment;
  }
  Fragment fragment = Fragment::undefined(type, count, at);
  if (guard) fill_zero(fragment, at);
  const Tensor& tensor = first.tensor();
  transfer(loading(tensor, options, guard, at), first, fragment);
  return fragment;
}

void store_guarded(const std::optional<ptx::Guard>& guard, const Element& first,
                   const Fragment& fragment, const StoreOptions& options, SourceLoc at) {
  Type type = first.tensor().type();
  if (fragment.type() != type) {
    throw Error(ErrorKind::user,
                "store: the fragment has type " + std::string(name(fragment.type())) +
                    " and the tensor " + std::string(name(type)) + "; convert with .to()",
                at);
  }
  if (storage_bits(type) == 4) {
    Element begin = byte_element("store", first, fragment.size(), at);
    return store_guarded(guard, begin, fragment.recast(u8, at), options, at);
  }
  Access how = storing(first.tensor(), options, guard, at);
  if (in_words(first, type, fragment.size())) {
    transfer(how, first, fragment);
    return;
  }
  Tracer& tracer = Tracer::current("store", at);
  for (int i = 0; i < fragment.size(); ++i) {
    ptx::RegId reg = tracer.reg_of(fragment.at(i, at).get(), at);
    access(how, first.offset() + Int(i), {&reg, 1}, storage_bits(type));
  }
}

}  // namespace

Value Element::load(const LoadOptions& options) const {
  return load_one(*this, offset_, options, std::nullopt, at_);
}

void Element::store(const Arg& value, const StoreOptions& options) const {
  require_access("store", tensor_.type(), {}, at_);
  Value stored = value.as(tensor_.type(), "store");
  Tracer& tracer = Tracer::current("store", at_);
  ptx::RegId reg = tracer.reg_of(stored, at_);
  access(storing(tensor_, options, std::nullopt, at_), offset_, {&reg, 1},
         storage_bits(tensor_.type()));
}

Fragment load(const Element& first, int count, const LoadOptions& options, SourceLoc at) {
  return load_guarded(std::nullopt, first, count, options, at);
}

Fragment load_if(const Arg& predicate, const Element& first, int count,
                 const LoadOptions& options) {
  bool never = false;
  std::optional<ptx::Guard> guard = guard_of(predicate, "load_if", never);
  if (never) {
    Fragment zeros = Fragment::undefined(first.tensor().type(), count, predicate.at());
    fill_zero(zeros, predicate.at());
    return zeros;
  }
  return load_guarded(guard, first, count, options, predicate.at());
}

void store(const Element& first, const Fragment& fragment, const StoreOptions& options,
           SourceLoc at) {
  store_guarded(std::nullopt, first, fragment, options, at);
}

void store_if(const Arg& predicate, const Element& first, const Fragment& fragment,
              const StoreOptions& options) {
  bool never = false;
  std::optional<ptx::Guard> guard = guard_of(predicate, "store_if", never);
  if (!never) store_guarded(guard, first, fragment, options, predicate.at());
}

namespace {

void cp_async(const Element& destination, const Element& source, int size,
              const ptx::Operand* source_size, SourceLoc at) {
  Tracer& tracer = Tracer::current("copy_async", at);
  bool spaces = destination.tensor().space() == MemorySpace::shared &&
                source.tensor().space() == MemorySpace::global;
  bool sizes = size == 4 || size == 8 || size == 16;
  if (!spaces || !sizes) {
    throw Error(ErrorKind::user,
                "copy_async: " + std::to_string(size) + " bytes from " +
                    space_word(source.tensor().space()) + " to " +
                    space_word(destination.tensor().space()) +
                    " memory; cp.async copies 4, 8 or 16 bytes from global to shared memory",
                at);
  }
  std::int64_t alignment = std::min(known_alignment(destination), known_alignment(source));
  if (alignment < size) {
    throw Error(ErrorKind::user,
                "copy_async: " + std::to_string(size) +
                    " bytes at addresses known to be aligned to " + std::to_string(alignment) +
                    "; copy fewer bytes at a time, or give the tensor its alignment",
                at);
  }
  ptx::Operand to = lang::address_operand(destination.tensor(), destination.offset(), at);
  ptx::Operand from = lang::address_operand(source.tensor(), source.offset(), at);
  // .cg keeps the line out of L1; it exists for 16 bytes only.
  const char* op = size == 16 ? "cp.async.cg.shared.global" : "cp.async.ca.shared.global";
  std::vector<ptx::Operand> operands{to, from, ptx::imm(size)};
  if (source_size != nullptr) operands.push_back(*source_size);
  tracer.emit(op, std::move(operands), at);
}

}  // namespace

void copy_async(const Element& destination, const Element& source, int size, SourceLoc at) {
  cp_async(destination, source, size, nullptr, at);
}

void copy_async_if(const Arg& predicate, const Element& destination, const Element& source,
                   int size) {
  SourceLoc at = predicate.at();
  Value p = predicate.as(pred, "copy_async_if");
  if (p.is_constant() && p.constant() != 0) return cp_async(destination, source, size, nullptr, at);
  Value read = select(Arg(p, at), Arg(ValueAccess::constant(u32, size), at), Arg(0, at));
  ptx::Operand source_size = Tracer::current("copy_async_if", at).operand(read, at);
  cp_async(destination, source, size, &source_size, at);
}

}  // namespace tilewright

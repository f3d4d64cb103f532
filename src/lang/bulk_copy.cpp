// SPDX-License-Identifier: Apache-2.0
// Bulk copies and what must be known of them when traced.
#include "tilewright/bulk_copy.h"

#include "lang/address.h"
#include "lang/reduction.h"
#include "lang/tensor_copy.h"

#include <algorithm>
#include <string>

namespace tilewright {
namespace {

using lang::Operands;
using lang::Tracer;

constexpr int kGrain = 16;  // bytes; PTX ISA, cp.async.bulk: size and alignment

struct Ends {
  const Element* destination;
  const Element* source;
};

void require_spaces(const char* what, const Ends& ends, MemorySpace destination, MemorySpace source,
                    SourceLoc at) {
  MemorySpace to = ends.destination->tensor().space();
  MemorySpace from = ends.source->tensor().space();
  if (to == destination && from == source) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": from " + lang::space_word(from) + " to " +
                  lang::space_word(to) + " memory; it copies from " + lang::space_word(source) +
                  " to " + lang::space_word(destination) + " memory",
              at);
}

void require_grain(const char* what, const char* which, const Element& element, SourceLoc at) {
  std::int64_t alignment = lang::known_alignment(element);
  if (alignment % kGrain == 0) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": the " + which + " is known to be aligned to " +
                  std::to_string(alignment) +
                  " bytes; it must be to 16: give the tensor its "
                  "alignment, or copy whole multiples of 16 bytes",
              at);
}

/// Refuses bytes that end beyond the tensor in shared memory, where nothing else would stop them.
void require_room(const char* what, const char* which, const Element& element, const Arg& bytes) {
  const Tensor& tensor = element.tensor();
  if (tensor.space() == MemorySpace::global || !tensor.layout().shape().is_static()) return;
  std::int64_t size_bytes = bytes.natural().is_constant() ? bytes.natural().constant() : 0;
  std::int64_t first = std::max<std::int64_t>(element.offset().min(), 0);
  std::int64_t room = (cosize(tensor.layout()).max() - first) * bits(tensor.type()) / 8;
  if (size_bytes <= room) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": " + std::to_string(size_bytes) + " bytes, and the " + which +
                  " has " + std::to_string(room) + " from its element " + std::to_string(first) +
                  " on; copy fewer, or allocate more",
              bytes.at());
}

/// The size as an operand: u32.
ptx::Operand size_operand(const char* what, const Arg& bytes) {
  SourceLoc at = bytes.at();
  Value size = bytes.is_literal() ? bytes.as(u32, what) : bytes.settled();
  if (!is_integer(size.type()) || bits(size.type()) < 32) {
    throw Error(ErrorKind::user,
                std::string(what) + ": the size has type " + std::string(name(size.type())) +
                    "; it must be an integer of 32 or 64 bits",
                at);
  }
  bool multiple = size.is_constant() ? size.constant() % kGrain == 0 && size.constant() > 0
                                     : size.facts().divisor % kGrain == 0;
  if (!multiple) {
    std::string known = size.is_constant() ? std::to_string(size.constant()) + " bytes"
                                           : "a size known to be a multiple of " +
                                                 std::to_string(size.facts().divisor) + " bytes";
    throw Error(ErrorKind::user,
                std::string(what) + ": " + known + "; it must be a positive multiple of 16" +
                    (size.is_constant() ? "" : ", by assume({.divisor = 16}) where you know it"),
                at);
  }
  return Tracer::current(what, at).operand(size.to(u32, at), at);
}

/// Checks and operands that all copies share.
std::vector<ptx::Operand> copy_operands(const char* what, const Ends& ends, const Arg& bytes) {
  SourceLoc at = bytes.at();
  Tracer::current(what, at);
  require_grain(what, "destination", *ends.destination, at);
  require_grain(what, "source", *ends.source, at);
  ptx::Operand size = size_operand(what, bytes);
  require_room(what, "destination", *ends.destination, bytes);
  require_room(what, "source", *ends.source, bytes);
  ptx::Operand to = lang::address_operand(*ends.destination, at);
  return {to, lang::address_operand(*ends.source, at), size};
}

void emit(const char* what, const std::string& op, std::vector<ptx::Operand> operands,
          SourceLoc at) {
  Tracer::current(what, at).emit(op, std::move(operands), at);
}

void wait(const char* what, const char* op, int pending, SourceLoc at) {
  if (pending < 0) {
    throw Error(
        ErrorKind::user,
        std::string(what) + ": " + std::to_string(pending) + " groups; it must be 0 or more", at);
  }
  emit(what, op, {ptx::imm(pending)}, at);
}

struct Reduction {
  const char* what;  // for errors
  const char* op;    // ".add"
  Operands operands;
};

/// ".add.noftz.f16"
std::string reduction_word(const Reduction& reduction, Type type, SourceLoc at) {
  std::string word = lang::engine_word(reduction.operands, type);
  if (!word.empty()) return reduction.op + word;
  throw Error(ErrorKind::user,
              std::string(reduction.what) + ": not defined for " + std::string(name(type)) + "; " +
                  lang::engine_text(reduction.operands),
              at);
}

void bulk_reduce(const Reduction& reduction, const Ends& ends, const Arg& bytes) {
  SourceLoc at = bytes.at();
  const char* what = reduction.what;
  require_spaces(what, ends, MemorySpace::global, MemorySpace::shared, at);
  Type type = ends.destination->tensor().type();
  Type from = ends.source->tensor().type();
  if (from != type) {
    throw Error(ErrorKind::user,
                std::string(what) + ": the source has type " + std::string(name(from)) +
                    " and the destination " + std::string(name(type)) + "; they must be the same",
                at);
  }
  std::string op =
      "cp.reduce.async.bulk.global.shared::cta.bulk_group" + reduction_word(reduction, type, at);
  emit(what, op, copy_operands(what, ends, bytes), at);
}

}  // namespace

namespace lang {

std::string with_policy(std::string op, const CopyCall& call, std::vector<ptx::Operand>& operands) {
  const std::optional<Value>& policy = call.options.policy;
  if (!policy) return op;
  if (policy->type() != b64) {
    throw Error(ErrorKind::user,
                std::string(call.what) + ": a policy of type " + std::string(name(policy->type())) +
                    "; it must come from cache_policy()",
                call.at);
  }
  operands.push_back(ptx::reg(Tracer::current(call.what, call.at).reg_of(*policy, call.at)));
  return op + ".L2::cache_hint";
}

}  // namespace lang

void bulk_load(const Element& destination, const Element& source, const Arg& bytes,
               const Mbarrier& done, const BulkOptions& options) {
  SourceLoc at = bytes.at();
  Ends ends{&destination, &source};
  require_spaces("bulk_load", ends, MemorySpace::shared, MemorySpace::global, at);
  std::vector<ptx::Operand> operands = copy_operands("bulk_load", ends, bytes);
  operands.push_back(lang::address_operand(done.cell(), at));
  std::string op =
      lang::with_policy("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
                        {"bulk_load", at, options}, operands);
  emit("bulk_load", op, std::move(operands), at);
}

void bulk_load_multicast(const Element& destination, const Element& source, const Arg& bytes,
                         const Mbarrier& done, const Arg& blocks) {
  SourceLoc at = bytes.at();
  Ends ends{&destination, &source};
  require_spaces("bulk_load_multicast", ends, MemorySpace::shared, MemorySpace::global, at);
  std::vector<ptx::Operand> operands = copy_operands("bulk_load_multicast", ends, bytes);
  operands.push_back(lang::address_operand(done.cell(), at));
  Value mask = blocks.as(u16, "bulk_load_multicast");
  operands.push_back(ptx::reg(Tracer::current("bulk_load_multicast", at).reg_of(mask, at)));
  emit("bulk_load_multicast",
       "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
       std::move(operands), at);
}

void bulk_send(const Element& destination, const Element& source, const Arg& bytes,
               const Mbarrier& done) {
  SourceLoc at = bytes.at();
  Ends ends{&destination, &source};
  require_spaces("bulk_send", ends, MemorySpace::cluster, MemorySpace::shared, at);
  if (done.cell().tensor().space() != MemorySpace::cluster) {
    throw Error(ErrorKind::user,
                "bulk_send: the mbarrier is this block's; take the receiver's by peer()", at);
  }
  std::vector<ptx::Operand> operands = copy_operands("bulk_send", ends, bytes);
  operands.push_back(lang::address_operand(done.cell(), at));
  emit("bulk_send", "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
       std::move(operands), at);
}

void bulk_store(const Element& destination, const Element& source, const Arg& bytes,
                const BulkOptions& options) {
  SourceLoc at = bytes.at();
  Ends ends{&destination, &source};
  require_spaces("bulk_store", ends, MemorySpace::global, MemorySpace::shared, at);
  std::vector<ptx::Operand> operands = copy_operands("bulk_store", ends, bytes);
  std::string op = lang::with_policy("cp.async.bulk.global.shared::cta.bulk_group",
                                     {"bulk_store", at, options}, operands);
  emit("bulk_store", op, std::move(operands), at);
}

void bulk_add(const Element& destination, const Element& source, const Arg& bytes) {
  bulk_reduce({"bulk_add", ".add", Operands::sum}, {&destination, &source}, bytes);
}
void bulk_min(const Element& destination, const Element& source, const Arg& bytes) {
  bulk_reduce({"bulk_min", ".min", Operands::order}, {&destination, &source}, bytes);
}
void bulk_max(const Element& destination, const Element& source, const Arg& bytes) {
  bulk_reduce({"bulk_max", ".max", Operands::order}, {&destination, &source}, bytes);
}
void bulk_and(const Element& destination, const Element& source, const Arg& bytes) {
  bulk_reduce({"bulk_and", ".and", Operands::bits}, {&destination, &source}, bytes);
}
void bulk_or(const Element& destination, const Element& source, const Arg& bytes) {
  bulk_reduce({"bulk_or", ".or", Operands::bits}, {&destination, &source}, bytes);
}
void bulk_xor(const Element& destination, const Element& source, const Arg& bytes) {
  bulk_reduce({"bulk_xor", ".xor", Operands::bits}, {&destination, &source}, bytes);
}

void bulk_prefetch(const Element& source, const Arg& bytes) {
  SourceLoc at = bytes.at();
  Tracer::current("bulk_prefetch", at);
  if (source.tensor().space() != MemorySpace::global) {
    throw Error(ErrorKind::user,
                std::string("bulk_prefetch: the source is in ") +
                    lang::space_word(source.tensor().space()) + " memory; it must be in global",
                at);
  }
  require_grain("bulk_prefetch", "source", source, at);
  ptx::Operand size = size_operand("bulk_prefetch", bytes);
  emit("bulk_prefetch", "cp.async.bulk.prefetch.L2.global",
       {lang::address_operand(source, at), size}, at);
}

void bulk_commit(SourceLoc at) { emit("bulk_commit", "cp.async.bulk.commit_group", {}, at); }
void bulk_wait(int pending, SourceLoc at) {
  wait("bulk_wait", "cp.async.bulk.wait_group", pending, at);
}
void bulk_wait_read(int pending, SourceLoc at) {
  wait("bulk_wait_read", "cp.async.bulk.wait_group.read", pending, at);
}

}  // namespace tilewright

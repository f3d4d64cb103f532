// SPDX-License-Identifier: Apache-2.0
// Mbarriers: init, arrivals, waits, and stores that complete them.
#include "tilewright/mbarrier.h"

#include "lang/address.h"
#include "tilewright/cluster.h"

#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

constexpr int kMaxCount = (1 << 20) - 1;  // PTX ISA, mbarrier: counts and bytes of a phase
constexpr int kMbarrierBytes = 8;

void require_own(const Element& cell, const char* what, SourceLoc at) {
  if (cell.tensor().space() == MemorySpace::shared) return;
  throw Error(ErrorKind::user,
              std::string(what) +
                  ": the mbarrier is a peer's; only arrive() and expect_tx() reach other blocks",
              at);
}

/// u32 bytes that a phase may expect.
Value expected_bytes(const Arg& bytes, const char* what) {
  Value given = bytes.is_literal() ? bytes.as(u32, what) : bytes.settled();
  if (!is_integer(given.type()) || bits(given.type()) < 32) {
    throw Error(ErrorKind::user,
                std::string(what) + ": the bytes have type " + std::string(name(given.type())) +
                    "; they must be an integer of 32 or 64 bits",
                bytes.at());
  }
  Value value = given.to(u32, bytes.at());
  if (value.is_constant() && (value.constant() < 0 || value.constant() > kMaxCount)) {
    throw Error(ErrorKind::user,
                std::string(what) + ": " + std::to_string(value.constant()) +
                    " bytes; a phase takes 0 to " + std::to_string(kMaxCount),
                bytes.at());
  }
  return value;
}

Value parity_of(const Arg& parity, const char* what) {
  Value value = parity.is_literal() ? parity.as(u32, what) : parity.settled();
  bool number = is_integer(value.type()) && bits(value.type()) == 32;
  if (number && value.is_constant() && value.constant() != 0 && value.constant() != 1) {
    throw Error(ErrorKind::user,
                std::string(what) + ": the parity is " + std::to_string(value.constant()) +
                    "; it must be 0 or 1",
                parity.at());
  }
  if (!number) {
    throw Error(ErrorKind::user,
                std::string(what) + ": the parity has type " + std::string(name(value.type())) +
                    "; it must be u32 or s32, 0 or 1",
                parity.at());
  }
  return value;
}

/// "mbarrier.arrive.expect_tx" in the mbarrier's space: a peer's is reached at scope cluster.
std::string arrive_op(const char* stem, const Element& cell) {
  bool own = cell.tensor().space() == MemorySpace::shared;
  return std::string(stem) + (own ? ".shared.b64" : ".release.cluster.shared::cluster.b64");
}

}  // namespace

void Mbarrier::init(int arrivals, SourceLoc at) const {
  require_own(cell_, "init", at);
  if (arrivals < 1 || arrivals > kMaxCount) {
    throw Error(ErrorKind::user,
                "init: a mbarrier of " + std::to_string(arrivals) +
                    " arrivals; a phase takes 1 to " + std::to_string(kMaxCount),
                at);
  }
  Tracer::current("init", at)
      .emit("mbarrier.init.shared.b64", {lang::address_operand(cell_, at), ptx::imm(arrivals)}, at);
}

void Mbarrier::invalidate(SourceLoc at) const {
  require_own(cell_, "invalidate", at);
  Tracer::current("invalidate", at)
      .emit("mbarrier.inval.shared.b64", {lang::address_operand(cell_, at)}, at);
}

void Mbarrier::arrive(SourceLoc at) const {
  Tracer::current("arrive", at)
      .emit(arrive_op("mbarrier.arrive", cell_), {ptx::sink(), lang::address_operand(cell_, at)},
            at);
}

void Mbarrier::arrive_after_reads(SourceLoc at) const {
  // Without a scope it is the block's own. At scope cluster ptxas emits a fence of the whole GPU.
  bool own = cell_.tensor().space() == MemorySpace::shared;
  Tracer::current("arrive_after_reads", at)
      .emit(own ? "mbarrier.arrive.shared.b64" : "mbarrier.arrive.shared::cluster.b64",
            {ptx::sink(), lang::address_operand(cell_, at)}, at);
}

void Mbarrier::arrive_expect_tx(const Arg& bytes) const {
  SourceLoc at = bytes.at();
  Tracer& tracer = Tracer::current("arrive_expect_tx", at);
  ptx::Operand operand = tracer.operand(expected_bytes(bytes, "arrive_expect_tx"), at);
  tracer.emit(arrive_op("mbarrier.arrive.expect_tx", cell_),
              {ptx::sink(), lang::address_operand(cell_, at), operand}, at);
}

void Mbarrier::expect_tx(const Arg& bytes) const {
  SourceLoc at = bytes.at();
  Tracer& tracer = Tracer::current("expect_tx", at);
  ptx::Operand operand = tracer.operand(expected_bytes(bytes, "expect_tx"), at);
  bool own = cell_.tensor().space() == MemorySpace::shared;
  tracer.emit(own ? "mbarrier.expect_tx.relaxed.cta.shared.b64"
                  : "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64",
              {lang::address_operand(cell_, at), operand}, at);
}

void Mbarrier::arrive_after_copies(SourceLoc at) const {
  require_own(cell_, "arrive_after_copies", at);
  Tracer::current("arrive_after_copies", at)
      .emit("cp.async.mbarrier.arrive.noinc.shared.b64", {lang::address_operand(cell_, at)}, at);
}

Value Mbarrier::try_wait(const Arg& parity) const {
  SourceLoc at = parity.at();
  Tracer& tracer = Tracer::current("try_wait", at);
  require_own(cell_, "try_wait", at);
  ptx::Operand operand = tracer.operand(parity_of(parity, "try_wait"), at);
  ptx::Operand address = lang::address_operand(cell_, at);
  // sm_80 has the test that returns at once only.
  const char* op = tracer.target().sm >= 90 ? "mbarrier.try_wait.parity.shared.b64"
                                            : "mbarrier.test_wait.parity.shared.b64";
  ptx::RegId done = tracer.new_reg(pred);
  tracer.emit(op, {ptx::reg(done), address, operand}, at);
  return tracer.result(pred, done, Uniformity::thread);
}

void Mbarrier::wait(const Arg& parity) const {
  SourceLoc at = parity.at();
  Tracer& tracer = Tracer::current("wait", at);
  require_own(cell_, "wait", at);
  // What does not change is computed before the loop.
  Value fixed = parity_of(parity, "wait");
  if (!fixed.is_constant()) tracer.reg_of(fixed, at);
  lang::address_operand(cell_, at);
  ptx::LabelId again = tracer.new_label("wait");
  tracer.emit_label(again);
  ptx::RegId done = tracer.reg_of(try_wait(Arg(fixed, at)), at);
  tracer.emit("bra", {ptx::label(again)}, at).guard = ptx::Guard{done, true};
}

Mbarrier Mbarrier::peer(const Arg& rank, SourceLoc at) const {
  require_own(cell_, "peer", at);
  Tensor there = tilewright::peer(cell_.tensor(), rank, at);
  return Mbarrier(Element(there, cell_.offset(), at));
}

Mbarriers::Mbarriers(int count, SourceLoc at)
    : count_(count), cells_([&] {
        if (count < 1) {
          throw Error(ErrorKind::user,
                      "Mbarriers: " + std::to_string(count) + " of them; take at least 1", at);
        }
        return shared(b64, Layout(Shape{Int(count)}), kMbarrierBytes, at);
      }()) {}

Mbarrier Mbarriers::at(const Index& index, SourceLoc where) const {
  return Mbarrier(cells_.element(tilewright::coord({index}), where));
}

void Mbarriers::init(int arrivals, SourceLoc at) const {
  for (int i = 0; i < count_; ++i)
    this->at(i, at).init(arrivals, at);
}

void store_async(const Element& cell, const Arg& value, const Mbarrier& completed) {
  SourceLoc at = value.at();
  Tracer& tracer = Tracer::current("store_async", at);
  Type type = cell.tensor().type();
  bool remote = cell.tensor().space() == MemorySpace::cluster &&
                completed.cell().tensor().space() == MemorySpace::cluster;
  if (!remote || bits(type) < 32) {
    throw Error(ErrorKind::user,
                "store_async: an element of " + std::string(name(type)) + " in " +
                    lang::space_word(cell.tensor().space()) + " memory with a mbarrier in " +
                    lang::space_word(completed.cell().tensor().space()) +
                    " memory; it takes 32 or 64 bits, and both by peer()",
                at);
  }
  ptx::Operand data = ptx::reg(tracer.reg_of(value.as(type, "store_async"), at));
  ptx::Operand address = lang::address_operand(cell, at);
  tracer.emit(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b" + std::to_string(bits(type)),
      {address, data, lang::address_operand(completed.cell(), at)}, at);
}

}  // namespace tilewright

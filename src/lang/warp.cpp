// SPDX-License-Identifier: Apache-2.0
// Warp-wide reductions, matches and election, and setmaxnreg.
#include "tilewright/warp.h"

#include "lang/tracer.h"
#include "tilewright/thread.h"

#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

constexpr std::int64_t kAllLanes = 0xffffffff;

[[noreturn]] void refuse(const char* what, Type type, const char* remedy, SourceLoc at) {
  throw Error(ErrorKind::user,
              std::string(what) + ": not defined for " + std::string(name(type)) + "; " + remedy,
              at);
}

/// op destination, value, all lanes.
Value collective(const char* what, const std::string& op, Type result, const Value& value,
                 Uniformity uniformity, SourceLoc at) {
  Tracer& tracer = Tracer::current(what, at);
  tracer.require_converged(what, Uniformity::warp, at);
  ptx::Operand operand = ptx::reg(tracer.reg_of(value, at));
  ptx::RegId destination = tracer.new_reg(result);
  tracer.emit(op, {ptx::reg(destination), operand, ptx::imm(kAllLanes)}, at);
  return tracer.result(result, destination, uniformity);
}

Value redux(const char* what, const char* op, const Arg& value) {
  SourceLoc at = value.at();
  Value x = value.natural();
  if (x.type() != s32 && x.type() != u32) {
    refuse(what, x.type(), "it takes s32 and u32; use warp_reduce() for others", at);
  }
  return collective(what, op + std::string(".") + std::string(name(x.type())), x.type(), x,
                    Uniformity::warp, at);
}

Value redux_bits(const char* what, const char* op, const Arg& value) {
  SourceLoc at = value.at();
  Value x = value.natural();
  if (x.type() == pred || bits(x.type()) != 32) {
    refuse(what, x.type(), "it takes types of 32 bits; use warp_reduce() for others", at);
  }
  return collective(what, op, x.type(), x, Uniformity::warp, at);
}

std::string match_op(const char* what, const char* op, const Value& value, SourceLoc at) {
  int width = value.type() == pred ? 1 : bits(value.type());
  if (width != 32 && width != 64) {
    refuse(what, value.type(), "it takes types of 32 or 64 bits", at);
  }
  return op + std::string(".b") + std::to_string(width);
}

void set_registers(const char* what, const char* op, int count, SourceLoc at) {
  Tracer& tracer = Tracer::current(what, at);
  tracer.require_converged(what, Uniformity::warp, at);
  if (count < 24 || count > 256 || count % 8 != 0) {
    throw Error(ErrorKind::user,
                std::string(what) + ": " + std::to_string(count) +
                    " registers; it must be a multiple of 8 from 24 to 256",
                at);
  }
  const ptx::Tuning& tuning = tracer.function().tuning;
  if (tracer.block[0] == 0 || (tuning.maxnreg == 0 && tuning.minnctapersm == 0)) {
    throw Error(ErrorKind::user,
                std::string(what) +
                    ": the assembler ignores it unless it knows the registers at entry; set "
                    "TraceOptions::block, and min_blocks_per_sm or max_registers",
                at);
  }
  tracer.emit(op, {ptx::imm(count)}, at);
}

}  // namespace

Value redux_add(const Arg& value) { return redux("redux_add", "redux.sync.add", value); }
Value redux_min(const Arg& value) { return redux("redux_min", "redux.sync.min", value); }
Value redux_max(const Arg& value) { return redux("redux_max", "redux.sync.max", value); }
Value redux_and(const Arg& value) { return redux_bits("redux_and", "redux.sync.and.b32", value); }
Value redux_or(const Arg& value) { return redux_bits("redux_or", "redux.sync.or.b32", value); }
Value redux_xor(const Arg& value) { return redux_bits("redux_xor", "redux.sync.xor.b32", value); }

Value match_any(const Arg& value) {
  SourceLoc at = value.at();
  Value x = value.natural();
  std::string op = match_op("match_any", "match.any.sync", x, at);
  return collective("match_any", op, u32, x, Uniformity::thread, at);
}

Value match_all(const Arg& value) {
  SourceLoc at = value.at();
  Value x = value.natural();
  std::string op = match_op("match_all", "match.all.sync", x, at);
  Value lanes = collective("match_all", op, u32, x, Uniformity::warp, at);
  return Arg(lanes, at) != Arg(0, at);  // all lanes, or none
}

Value activemask(SourceLoc at) {
  Tracer& tracer = Tracer::current("activemask", at);
  ptx::RegId lanes = tracer.new_reg(u32);
  tracer.emit("activemask.b32", {ptx::reg(lanes)}, at);
  return tracer.result(u32, lanes, Uniformity::thread);
}

Value elect_one(SourceLoc at) {
  Tracer& tracer = Tracer::current("elect_one", at);
  tracer.require_converged("elect_one", Uniformity::warp, at);
  ptx::RegId elected = tracer.new_reg(pred);
  tracer.emit("elect.sync", {ptx::pair(ptx::sink(), ptx::reg(elected)), ptx::imm(kAllLanes)}, at);
  return tracer.result(pred, elected, Uniformity::thread);
}

void increase_registers(int count, SourceLoc at) {
  set_registers("increase_registers", "setmaxnreg.inc.sync.aligned.u32", count, at);
}
void decrease_registers(int count, SourceLoc at) {
  set_registers("decrease_registers", "setmaxnreg.dec.sync.aligned.u32", count, at);
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Recording of instructions: registers, sites, sharing of common subexpressions, regions.
#include "lang/tracer.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <string>
#include <utility>

namespace tilewright {

Value ValueAccess::constant(Type type, std::int64_t bits) {
  Value value;
  value.type_ = type;
  value.bits_ = bits;
  if (is_integer(type) || is_bits(type)) {
    // Bounds are signed: a u64 of 2^63 or more keeps only the power of two of its divisor.
    auto negated = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(bits));
    std::int64_t magnitude = bits < 0 ? negated : bits;
    bool whole = magnitude > 0 && (bits > 0 || type != u64);
    std::int64_t power = magnitude > 0 ? magnitude & -magnitude : std::int64_t{1} << 62;
    std::int64_t divisor = whole ? magnitude : power;
    value.facts_ = {divisor, bits, bits};
  }
  return value;
}

Value ValueAccess::of_reg(Type type, ptx::RegId reg, Uniformity uniformity, std::uint32_t region,
                          Facts facts) {
  Value value;
  value.type_ = type;
  value.reg_ = reg;
  value.has_reg_ = true;
  value.uniformity_ = uniformity;
  value.region_ = region;
  value.facts_ = facts;
  return value;
}

Value ValueAccess::direct(const Var& var) {
  Value value = of_reg(var.type_, var.reg_, var.uniformity_, 0, {});
  value.direct_var_ = true;
  return value;
}

Value ValueAccess::with_addend(const Value& value, std::int64_t addend, Facts facts) {
  Value moved = value;
  moved.bits_ = addend;
  moved.facts_ = facts;
  moved.fresh_ = false;
  return moved;
}

void ValueAccess::replace(Value& value, const Value& by) {
  value.~Value();
  new (&value) Value(by);
}

Value ValueAccess::snapshot(const Value& direct, SourceLoc at) {
  return Value(Var(reg(direct), direct.type(), direct.uniformity()), at);
}

namespace lang {
namespace {

thread_local Tracer* current_tracer = nullptr;
thread_local std::uint32_t next_region = 1;

/// Of one function, far more than ptxas would take.
constexpr ptx::RegId kRegistersOfFunction = 1u << 22;

constexpr std::uint64_t kHashFactor = 0x9E3779B97F4A7C15ull;

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * kHashFactor;
  return hash ^ (hash >> 29);
}

int register_class(Type type) {
  if (type == pred) return 0;
  int width = bits(type);
  return width <= 16 ? 1 : width == 32 ? 2 : 3;
}

struct RegisterStyle {
  const char* prefix;
  Type type;
};
constexpr RegisterStyle kRegisterStyles[] = {
    {"%p", pred}, {"%h", b16}, {"%r", b32}, {"%rd", b64}, {"%c", b8}};
constexpr int kByteClass = 4;

bool has_immediate_form(Type type) {
  return type != pred && type != f16 && type != bf16 && !is_packed(type) && bits(type) >= 16;
}

ptx::Operand immediate_of(Type type, std::int64_t value_bits) {
  ptx::Operand operand;
  operand.kind = ptx::Operand::Kind::imm;
  operand.type = type == f32 || type == f64 ? type : type == u64 || type == b64 ? u64 : s64;
  operand.value = value_bits;
  return operand;
}

}  // namespace

const char* move_of(Type type) {
  static constexpr const char* kMoves[] = {"mov.pred", "mov.b16", "mov.b32", "mov.b64"};
  return kMoves[register_class(type)];
}

Tracer::Tracer(ptx::Target target, std::string entry)
    : first_region_(next_region), exceptions_(std::uncaught_exceptions()) {
  module_.target = target;
  function_.name = std::move(entry);
  function_.entry = true;
  open_.push_back(1);
  regions_.push_back({RegionKind::body, Uniformity::grid, next_region++});
  current_tracer = this;
}

Tracer::~Tracer() { current_tracer = nullptr; }

Tracer* Tracer::current_or_null() { return current_tracer; }

Tracer& Tracer::current(const char* what, SourceLoc at) {
  if (current_tracer == nullptr) {
    throw Error(ErrorKind::user,
                std::string(what) +
                    ": no kernel is being traced; call it inside the body passed to trace()",
                at);
  }
  return *current_tracer;
}

void Tracer::close_body() {
  TW_ASSERT(regions_.size() == 1, "every region is closed by the scope that opened it");
  emit("ret", {}, {});
  std::vector<ptx::Stmt> prologue;
  for (const Special& special : specials_) {
    if (!special.used) continue;
    ptx::Instr read;
    read.op = ptx::opcode(special.wide ? "mov.u64" : "mov.u32");
    read.operands = {ptx::reg(special.reg), ptx::special(special.name)};
    read.site = special.site;
    prologue.emplace_back(std::move(read));
  }
  function_.body.insert(function_.body.begin(), std::make_move_iterator(prologue.begin()),
                        std::make_move_iterator(prologue.end()));
}

ptx::Module Tracer::finish(SourceLoc at) {
  close_body();
  if (functions_begun_ > 0) take_own_registers(at);
  module_.functions.push_back(std::move(function_));
  return std::move(module_);
}

void Tracer::begin_function(std::string name, SourceLoc at) {
  if (functions_begun_ + 1 >= (~ptx::RegId{0}) / kRegistersOfFunction) {
    throw Error(ErrorKind::user,
                "function_: '" + name + "' is one of over " + std::to_string(functions_begun_) +
                    " definitions in a trace; define each once and keep the object",
                at);
  }
  waiting_.push_back({std::exchange(function_, {}), first_register_, std::exchange(regions_, {}),
                      std::exchange(open_, {}), first_region_, std::exchange(shared_, {}),
                      std::exchange(specials_, {}), std::exchange(reg_counts_, {})});
  function_.name = std::move(name);
  function_.linkage = ptx::Linkage::internal;
  first_register_ = ++functions_begun_ * kRegistersOfFunction;
  first_region_ = next_region;
  open_.push_back(1);
  regions_.push_back({RegionKind::body, Uniformity::thread, next_region++});
  unshared_ = kNoReg;
  last_branch_ = {};
}

ptx::Function Tracer::end_function(SourceLoc at) {
  close_body();
  take_own_registers(at);
  ptx::Function made = std::move(function_);
  abandon_function();
  return made;
}

void Tracer::abandon_function() {
  Waiting& back = waiting_.back();
  function_ = std::move(back.function);
  first_register_ = back.first_register;
  regions_ = std::move(back.regions);
  open_ = std::move(back.open);
  first_region_ = back.first_region;
  shared_ = std::move(back.shared);
  specials_ = std::move(back.specials);
  reg_counts_ = back.reg_counts;
  waiting_.pop_back();
  open_.resize(next_region - first_region_);  // regions of the other function are closed here
  unshared_ = kNoReg;
  last_branch_ = {};
}

/// Numbers the function's registers from 0, and finds those that are not its own: Vars and
/// Fragments that crossed its border.
void Tracer::take_own_registers(SourceLoc at) {
  const ptx::Instr* current = nullptr;
  auto own = [&](ptx::RegId& reg) {
    reg -= first_register_;
    if (reg < function_.registers.size()) return;
    const ptx::Site& site = module_.sites[current->site];
    throw Error(ErrorKind::user,
                "function_: '" + function_.name + "' uses, at " + module_.files[site.file] + ":" +
                    std::to_string(site.line) +
                    ", a Var or Fragment of another function; pass its value as an argument, or "
                    "return it as a result",
                at);
  };
  auto visit = [&](auto& self, ptx::Operand& operand) -> void {
    if (operand.kind == ptx::Operand::Kind::reg ||
        operand.kind == ptx::Operand::Kind::address_reg) {
      own(operand.id);
    }
    for (ptx::Operand& elem : operand.elems)
      self(self, elem);
  };
  for (ptx::Stmt& stmt : function_.body) {
    auto* instr = std::get_if<ptx::Instr>(&stmt);
    if (instr == nullptr) continue;
    current = instr;
    if (instr->guard) own(instr->guard->reg);
    for (ptx::Operand& operand : instr->operands)
      visit(visit, operand);
  }
}

ptx::RegId Tracer::new_reg(Type type) { return new_of_class(register_class(type)); }
ptx::RegId Tracer::new_byte() { return new_of_class(kByteClass); }

ptx::RegId Tracer::new_of_class(int cls) {
  const RegisterStyle& style = kRegisterStyles[cls];
  auto number = static_cast<std::size_t>(cls);
  function_.registers.push_back({style.prefix + std::to_string(++reg_counts_[number]), style.type});
  return first_register_ + static_cast<ptx::RegId>(function_.registers.size() - 1);
}

ptx::LabelId Tracer::new_label(std::string_view stem) {
  auto id = static_cast<ptx::LabelId>(function_.labels.size());
  function_.labels.push_back("$" + std::string(stem) + "_" + std::to_string(id));
  return id;
}

ptx::Instr& Tracer::emit(std::string_view op, std::vector<ptx::Operand> operands, SourceLoc at) {
  ptx::Instr instr;
  instr.op = ptx::opcode(op);
  instr.operands = std::move(operands);
  instr.site = site(at);
  function_.body.emplace_back(std::move(instr));
  return std::get<ptx::Instr>(function_.body.back());
}

void Tracer::emit_label(ptx::LabelId label) { function_.body.emplace_back(ptx::Label{label}); }

void Tracer::emit_directive(std::string text) {
  function_.body.emplace_back(ptx::Directive{std::move(text)});
}

void Tracer::check_usable(const Value& value, SourceLoc at) const {
  if (ValueAccess::direct_var(value)) return;
  if (!ValueAccess::has_reg(value) || is_open(ValueAccess::region(value))) return;
  if (in_function() && ValueAccess::region(value) < first_region_) {
    throw Error(ErrorKind::user,
                "a value of type " + std::string(name(value.type())) +
                    " comes from outside the function_ '" + function_.name +
                    "'; pass it as an argument",
                at);
  }
  if (ValueAccess::region(value) < first_region_) {
    throw Error(ErrorKind::user,
                "a value of type " + std::string(name(value.type())) +
                    " comes from an earlier trace; compute it inside the body that uses it",
                at);
  }
  throw Error(ErrorKind::user,
              "a value of type " + std::string(name(value.type())) +
                  " is used outside the if_, for_ or while_ body that computed it, where it may "
                  "never have been computed; keep it in a Var declared before that body",
              at);
}

ptx::Operand Tracer::operand(const Value& value, SourceLoc at, bool immediate) {
  check_usable(value, at);
  ValueAccess::set_fresh(value, false);
  if (!ValueAccess::has_reg(value)) {
    if (immediate && has_immediate_form(value.type())) {
      return immediate_of(value.type(), ValueAccess::bits(value));
    }
    return ptx::reg(reg_of(value, at));
  }
  return ptx::reg(reg_of(value, at));
}

ptx::RegId Tracer::reg_of(const Value& value, SourceLoc at) {
  check_usable(value, at);
  if (ValueAccess::has_reg(value) && ValueAccess::bits(value) == 0) {
    if (ValueAccess::region(value) == regions_.front().id) use_special(ValueAccess::reg(value), at);
    return ValueAccess::reg(value);
  }
  if (ValueAccess::has_reg(value)) {  // register plus constant
    Value base = ValueAccess::of_reg(value.type(), ValueAccess::reg(value), value.uniformity(),
                                     ValueAccess::region(value), {});
    Value addend = ValueAccess::constant(value.type(), ValueAccess::bits(value));
    std::string op = "add." + std::string(name(value.type()));
    return ValueAccess::reg(pure(op, value.type(), {&base, &addend}, at, value.facts()));
  }
  std::int64_t constant_bits = ValueAccess::bits(value);
  if (value.type() == pred) {
    Value zero = ValueAccess::constant(s32, 0);
    Value other = ValueAccess::constant(s32, constant_bits != 0 ? 0 : 1);
    Value made = pure("setp.eq.s32", pred, {&zero, &other}, at);
    return ValueAccess::reg(made);
  }
  Type plain = bits(value.type()) <= 16                     ? u16
               : value.type() == f32 || value.type() == f64 ? value.type()
               : bits(value.type()) == 32                   ? u32
                                                            : u64;
  Value carrier = ValueAccess::constant(plain, constant_bits);
  Value made = pure(move_of(value.type()), value.type(), {&carrier}, at);
  return ValueAccess::reg(made);
}

Value Tracer::special(const char* register_name, Type type, Uniformity uniformity, Facts facts) {
  for (const Special& known : specials_) {
    if (known.name == register_name) {
      return ValueAccess::of_reg(type, known.reg, uniformity, regions_.front().id, facts);
    }
  }
  ptx::RegId reg = new_reg(type);
  specials_.push_back({register_name, reg, bits(type) == 64, false, 0});
  return ValueAccess::of_reg(type, reg, uniformity, regions_.front().id, facts);
}

void Tracer::use_special(ptx::RegId reg, SourceLoc at) {
  for (Special& special : specials_) {
    if (special.reg != reg || special.used) continue;
    special.used = true;
    special.site = site(at);
  }
}

Value Tracer::result(Type type, ptx::RegId reg, Uniformity uniformity, Facts facts) {
  return ValueAccess::of_reg(type, reg, uniformity, innermost().id, facts);
}

std::uint64_t Tracer::hash_of(const ptx::Opcode& op,
                              const std::vector<ptx::Operand>& operands) const {
  std::uint64_t hash = op.form;
  for (ptx::Mod slot : op.slots)
    hash = mix(hash, slot.id);
  for (const ptx::Operand& operand : operands) {
    hash = mix(hash, static_cast<std::uint64_t>(operand.kind) << 32 | operand.id);
    hash = mix(
        hash, static_cast<std::uint64_t>(operand.value) + static_cast<std::uint64_t>(operand.type));
  }
  return hash;
}

Value Tracer::pure(std::string_view op, Type type, std::initializer_list<const Value*> args,
                   SourceLoc at, Facts facts) {
  std::vector<ptx::Operand> operands{ptx::Operand{}};
  operands.reserve(args.size() + 1);
  Uniformity uniformity = Uniformity::grid;
  bool reads_var = false;
  for (const Value* arg : args) {
    uniformity = std::max(uniformity, arg->uniformity());
    reads_var |= ValueAccess::direct_var(*arg);
    operands.push_back(operand(*arg, at));
  }
  const ptx::Opcode& opcode = ptx::opcode(op);
  std::uint64_t hash = hash_of(opcode, operands);
  if (!reads_var) {
    auto [begin, end] = shared_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      const Shared& entry = it->second;
      if (is_open(entry.region) && entry.op == opcode && entry.value.type() == type &&
          std::equal(entry.operands.begin() + 1, entry.operands.end(), operands.begin() + 1,
                     operands.end())) {
        if (ValueAccess::reg(entry.value) == unshared_) unshared_ = kNoReg;
        return entry.value;
      }
    }
  }
  ptx::RegId destination = new_reg(type);
  operands[0] = ptx::reg(destination);
  Value value = result(type, destination, uniformity, facts);
  ptx::Instr instr;
  instr.op = opcode;
  instr.operands = operands;
  instr.site = site(at);
  function_.body.emplace_back(std::move(instr));
  if (!reads_var) {
    shared_.emplace(hash, Shared{opcode, std::move(operands), value, innermost().id});
  }
  ValueAccess::set_fresh(value, true);
  unshared_ = destination;
  return value;
}

bool Tracer::retarget(const Value& value, ptx::RegId var) {
  if (!ValueAccess::has_reg(value) || ValueAccess::bits(value) != 0) return false;
  if (function_.body.empty()) return false;
  auto* last = std::get_if<ptx::Instr>(&function_.body.back());
  if (last == nullptr || last->operands.empty()) return false;
  ptx::RegId written = ValueAccess::reg(value);
  if (written != unshared_) return false;
  if (last->operands[0].kind != ptx::Operand::Kind::reg || last->operands[0].id != written) {
    return false;
  }
  std::uint64_t hash = 0;
  {
    std::vector<ptx::Operand> key = last->operands;
    key[0] = ptx::Operand{};
    hash = hash_of(last->op, key);
  }
  auto [begin, end] = shared_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (ValueAccess::reg(it->second.value) == written) {
      shared_.erase(it);
      break;
    }
  }
  last->operands[0].id = var;
  return true;
}

Region& Tracer::open(RegionKind kind, Uniformity divergence) {
  std::uint32_t id = next_region++;
  open_.push_back(1);
  regions_.push_back({kind, std::max(divergence, regions_.back().divergence), id});
  return regions_.back();
}

void Tracer::close_branch() {
  if (abandoned()) return;
  last_branch_ = regions_.back();
  close();
  emit_label(last_branch_.end_label);
}

bool Tracer::last_branch_is_open_for_else() const {
  if (function_.body.empty()) return false;
  const auto* last = std::get_if<ptx::Label>(&function_.body.back());
  return last != nullptr && last_branch_.kind == RegionKind::branch &&
         last_branch_.taken != Region::Taken::ended && last->id == last_branch_.end_label;
}

bool Tracer::abandoned() const { return std::uncaught_exceptions() > exceptions_; }

void Tracer::close() {
  open_[regions_.back().id - first_region_] = 0;
  regions_.pop_back();
}

Region* Tracer::innermost_loop() {
  for (auto it = regions_.rbegin(); it != regions_.rend(); ++it) {
    if (it->kind == RegionKind::loop) return &*it;
  }
  return nullptr;
}

Uniformity Tracer::divergence() const { return regions_.back().divergence; }

void Tracer::diverge(Uniformity uniformity, Region& from) {
  bool inside = false;
  for (Region& region : regions_) {
    inside |= &region == &from;
    if (inside) region.divergence = std::max(region.divergence, uniformity);
  }
}

void Tracer::require_converged(const char* what, Uniformity group, SourceLoc at) const {
  if (divergence() <= group) return;
  if (in_function()) {
    throw Error(ErrorKind::user,
                std::string(what) + ": stands in the function_ '" + function_.name +
                    "', which any of a warp's threads may call; use a C++ function, which is "
                    "inlined",
                at);
  }
  static constexpr const char* kGroups[] = {"grid", "block", "warp", "thread"};
  auto wanted = static_cast<std::size_t>(group);
  throw Error(ErrorKind::user,
              std::string(what) + ": all threads of the " + kGroups[wanted] +
                  " must execute it, but it stands under a condition that differs between " +
                  (divergence() == Uniformity::thread ? "threads" : "warps") +
                  "; move it out of that if_ or loop, or make the condition uniform (a Var takes "
                  "Uniformity::block or warp)",
              at);
}

std::vector<std::uint32_t> Tracer::open_regions() const {
  std::vector<std::uint32_t> ids;
  ids.reserve(regions_.size());
  for (const Region& region : regions_)
    ids.push_back(region.id);
  return ids;
}

void Tracer::note_wgmma_wait(int pending) {
  wgmma_waits_.push_back({wgmma_groups - pending, regions_.back().id});
}

bool Tracer::wgmma_waited(int group, const std::vector<std::uint32_t>& regions) const {
  return std::any_of(wgmma_waits_.begin(), wgmma_waits_.end(), [&](const WgmmaWait& wait) {
    // Around the wgmma, or around the reader: neither can be reached past the wait.
    bool around = is_open(wait.region) ||
                  std::find(regions.begin(), regions.end(), wait.region) != regions.end();
    return wait.done >= group && around;
  });
}

ptx::SiteId Tracer::site(SourceLoc at) {
  if (attributed_.line > 0) at = attributed_;
  if (at.line <= 0) return 0;
  latest_ = at;
  ptx::SiteId parent = calls_.empty() ? 0 : calls_.back();
  std::uint64_t key = mix(
      mix(reinterpret_cast<std::uintptr_t>(at.file), static_cast<std::uint64_t>(at.line)), parent);
  auto [it, added] = sites_.try_emplace(key, 0);
  if (added) {
    auto file = std::find(module_.files.begin(), module_.files.end(), at.file);
    auto index = static_cast<std::uint32_t>(file - module_.files.begin());
    if (file == module_.files.end()) module_.files.emplace_back(at.file);
    module_.sites.push_back({index, static_cast<std::uint32_t>(at.line), 0, parent});
    it->second = static_cast<ptx::SiteId>(module_.sites.size() - 1);
  }
  return it->second;
}

Tracer::AttributeTo::AttributeTo(Tracer& tracer, SourceLoc at)
    : tracer_(tracer), outermost_(tracer.attributed_.line <= 0) {
  if (outermost_) tracer_.attributed_ = at;
}

Tracer::AttributeTo::~AttributeTo() {
  if (outermost_) tracer_.attributed_ = {};
}

void Tracer::push_call(SourceLoc at) { calls_.push_back(site(at)); }
void Tracer::pop_call() { calls_.pop_back(); }

}  // namespace lang
}  // namespace tilewright

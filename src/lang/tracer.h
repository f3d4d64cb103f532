// SPDX-License-Identifier: Apache-2.0
// The recorder behind the language: one a trace, current on its thread.
#pragma once

#include "tilewright/module.h"
#include "tilewright/value.h"

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tilewright {

/// The library's way into Value and Var.
struct ValueAccess {
  static Value constant(Type type, std::int64_t bits);
  static Value of_reg(Type type, ptx::RegId reg, Uniformity uniformity, std::uint32_t region,
                      Facts facts);
  static Value direct(const Var& var);
  static Value with_addend(const Value& value, std::int64_t addend, Facts facts);
  static Var make_var(Type type, ptx::RegId reg, Uniformity uniformity) {
    return Var(reg, type, uniformity);
  }
  static ptx::RegId reg(const Value& value) { return value.reg_; }
  static ptx::RegId reg(const Var& var) { return var.reg_; }
  static std::int64_t bits(const Value& value) { return value.bits_; }
  static bool has_reg(const Value& value) { return value.has_reg_; }
  static bool direct_var(const Value& value) { return value.direct_var_; }
  static bool fresh(const Value& value) { return value.fresh_; }
  static std::uint32_t region(const Value& value) { return value.region_; }
  static void set_fresh(const Value& value, bool fresh) { value.fresh_ = fresh; }
  static void replace(Value& value, const Value& by);
  static Value snapshot(const Value& direct, SourceLoc at);
  static void set_uniformity(Value& value, Uniformity u) { value.uniformity_ = u; }
};

namespace lang {

enum class RegionKind : std::uint8_t { body, branch, loop };

struct Region {
  RegionKind kind;
  Uniformity divergence;  ///< the group that is sure to execute it together
  std::uint32_t id;
  ptx::LabelId break_label = 0, continue_label = 0;  ///< of a loop
  ptx::LabelId end_label = 0;                        ///< of a branch
  /// What a branch's constant condition decides when traced; `ended` after an else_.
  enum class Taken : std::uint8_t { by_thread, always, never, ended } taken = Taken::by_thread;
};

constexpr ptx::RegId kNoReg = ~ptx::RegId{0};

/// The instruction that moves a register of the type: "mov.b32".
const char* move_of(Type type);

/// Records one function of a module.
class Tracer {
 public:
  Tracer(ptx::Target target, std::string entry);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  ~Tracer();

  /// Throws Error(user) outside a trace; `what` names the operation.
  static Tracer& current(const char* what, SourceLoc at);
  static Tracer* current_or_null();

  ptx::Module& module() { return module_; }
  ptx::Function& function() { return function_; }
  ptx::Target target() const { return module_.target; }
  /// `at`: the line of the trace.
  ptx::Module finish(SourceLoc at);

  /// Records another function from here on; the present one waits until the other one ends.
  void begin_function(std::string name, SourceLoc at);
  /// The function with its final `ret`. `at` is the line of its definition.
  ptx::Function end_function(SourceLoc at);
  /// Goes back without it, if the present one is not the kernel.
  void abandon_function();
  bool in_function() const { return !waiting_.empty(); }

  ptx::RegId new_reg(Type type);
  /// A register of 8 bits, as some conversions want; values of 8 bits live in those of 16.
  ptx::RegId new_byte();
  ptx::LabelId new_label(std::string_view stem);
  /// Appends an instruction with operands as given.
  ptx::Instr& emit(std::string_view op, std::vector<ptx::Operand> operands, SourceLoc at);
  void emit_label(ptx::LabelId label);
  void emit_directive(std::string text);
  /// A lane-pure instruction on values: shared with an equal one in this region or its parents.
  Value pure(std::string_view op, Type result, std::initializer_list<const Value*> args,
             SourceLoc at, Facts facts = {});
  /// The value as an operand: an immediate where `immediate` allows, else a register.
  ptx::Operand operand(const Value& value, SourceLoc at, bool immediate = true);
  ptx::RegId reg_of(const Value& value, SourceLoc at);
  /// A Value for a register just written by emit().
  Value result(Type type, ptx::RegId reg, Uniformity uniformity, Facts facts = {});
  /// Makes the last instruction write `var` instead, if it wrote `value`. Pre: nobody else holds
  /// it.
  bool retarget(const Value& value, ptx::RegId var);

  // Regions.
  Region& open(RegionKind kind, Uniformity divergence);
  void close();
  /// Closes a branch at its end label; an else_ may follow at once.
  void close_branch();
  bool last_branch_is_open_for_else() const;
  ptx::LabelId last_branch_label() const { return last_branch_.end_label; }
  Uniformity last_branch_divergence() const { return last_branch_.divergence; }
  Region::Taken last_branch_taken() const { return last_branch_.taken; }
  Region& innermost() { return regions_.back(); }
  Region* innermost_loop();
  bool is_open(std::uint32_t region) const {
    return region >= first_region_ && open_[region - first_region_] != 0;
  }
  /// The threads that are sure to execute this point together.
  Uniformity divergence() const;
  /// From here to the end of the current region only part of each group may go on.
  void diverge(Uniformity uniformity, Region& from);
  void diverge_all(Uniformity uniformity) { diverge(uniformity, regions_.front()); }
  /// Whether an exception is unwinding the trace, so that scopes must not record any more.
  bool abandoned() const;
  /// Throws Error(user) unless all threads of the group execute this point together.
  void require_converged(const char* what, Uniformity group, SourceLoc at) const;

  ptx::SiteId site(SourceLoc at);
  /// The newest known line: for an operation whose C++ syntax has no place for one.
  SourceLoc latest() const { return latest_; }
  /// Every instruction recorded while it lives belongs to the caller's line `at`.
  class AttributeTo {
   public:
    AttributeTo(Tracer& tracer, SourceLoc at);
    ~AttributeTo();
    AttributeTo(const AttributeTo&) = delete;
    AttributeTo& operator=(const AttributeTo&) = delete;

   private:
    Tracer& tracer_;
    bool outermost_;
  };
  void push_call(SourceLoc at);
  void pop_call();

  // Facts of the launch that the trace may use.
  std::array<int, 3> block{0, 0, 0};  ///< threads of a block; 0: not known
  std::uint32_t used_barriers = 1;    ///< bit i: barrier i is taken; 0 is the whole block's
  int fragments = 0;                  ///< made so far
  int role_fragments = 0;             ///< the first that may be used here: see roles()
  int wgmma_groups = 0;               ///< committed so far
  bool wgmma_fenced = false;          ///< a fence lies before
  std::vector<Value> symbols;         ///< values behind the layout's dynamic integers, by id - 1

  /// The regions around this point, outermost first.
  std::vector<std::uint32_t> open_regions() const;
  /// Records that all but the newest `pending` wgmma groups are done here.
  void note_wgmma_wait(int pending);
  /// Whether a wait for the group lies on every path from its wgmma, in `regions`, to here.
  bool wgmma_waited(int group, const std::vector<std::uint32_t>& regions) const;

  /// A special register, read once at the kernel's entry if anything uses it.
  Value special(const char* register_name, Type type, Uniformity uniformity, Facts facts);

 private:
  ptx::RegId new_of_class(int cls);
  void check_usable(const Value& value, SourceLoc at) const;
  std::uint64_t hash_of(const ptx::Opcode& op, const std::vector<ptx::Operand>& operands) const;

  void close_body();
  void take_own_registers(SourceLoc at);

  ptx::Module module_;
  ptx::Function function_;
  ptx::RegId first_register_ = 0;  // of function_: others' registers are told by their numbers
  std::vector<Region> regions_;
  std::vector<std::uint8_t> open_;  // by region
  std::uint32_t first_region_ = 0;  // ids go on from trace to trace, so that none is mistaken
  ptx::RegId unshared_ = kNoReg;    // what the last instruction wrote, if one Value holds it
  Region last_branch_{};
  int exceptions_ = 0;  // in flight when the trace began
  struct Shared {
    ptx::Opcode op;
    std::vector<ptx::Operand> operands;
    Value value;
    std::uint32_t region;
  };
  std::unordered_multimap<std::uint64_t, Shared> shared_;
  std::unordered_map<std::uint64_t, ptx::SiteId> sites_;
  std::vector<ptx::SiteId> calls_;
  struct Special {
    std::string_view name;
    ptx::RegId reg;
    bool wide;
    bool used;
    ptx::SiteId site;  ///< of the first use
  };
  std::vector<Special> specials_;
  /// A function whose recording another one interrupts.
  struct Waiting {
    ptx::Function function;
    ptx::RegId first_register;
    std::vector<Region> regions;
    std::vector<std::uint8_t> open;
    std::uint32_t first_region;
    std::unordered_multimap<std::uint64_t, Shared> shared;
    std::vector<Special> specials;
    std::array<int, 5> reg_counts;
  };
  std::vector<Waiting> waiting_;
  ptx::RegId functions_begun_ = 0;
  void use_special(ptx::RegId reg, SourceLoc at);
  struct WgmmaWait {
    int done;  ///< groups up to this one
    std::uint32_t region;
  };
  std::vector<WgmmaWait> wgmma_waits_;
  SourceLoc attributed_{};
  SourceLoc latest_{};
  std::array<int, 5> reg_counts_{};  // pred, 16, 32, 64, 8
};

}  // namespace lang
}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// Decodes a module: global variables first, then each function into instruction records.
#include "emu/decode.h"

#include "emu/grid.h"

#include <algorithm>

namespace tilewright::emu::detail {

namespace {

std::int64_t align_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::user, message); }

void initialize(Code& code, Device& device, const ptx::Variable& v) {
  const GlobalVariable* g = find_global(code, v.name);
  Memory& memory = *device.memory;
  Allocation& allocation = *memory.at_or_below(g->address);
  memory.fill(allocation, allocation.base, allocation.size, 0, 1);
  if (!v.init) return;
  const auto& bytes = v.init->bytes;
  if (static_cast<std::int64_t>(bytes.size()) > allocation.size) {
    fail("variable " + v.name + " has " + std::to_string(allocation.size) +
         " bytes but its initialiser has " + std::to_string(bytes.size()));
  }
  memory.write(allocation, allocation.base, std::as_bytes(std::span(bytes)));
  for (const ptx::InitAddress& a : v.init->addresses) {
    const std::uint64_t value =
        symbol_value(code, code.module.symbols[a.symbol]) + static_cast<std::uint64_t>(a.offset);
    if (a.at < 0 || a.width < 1 || a.width > 8 || a.at + a.width > allocation.size) {
      fail("the initialiser of " + v.name + " has an address outside the variable");
    }
    memory.write(allocation, allocation.base + static_cast<std::uint64_t>(a.at),
                 std::as_bytes(std::span(&value, 1)).first(static_cast<std::size_t>(a.width)));
  }
}

void place_globals(Code& code, Device& device) {
  auto place = [&](const ptx::Variable& v) {
    if (v.space != ptx::Space::global && v.space != ptx::Space::const_) return;
    if (find_global(code, v.name) != nullptr) return;
    const std::int64_t bytes = std::max<std::int64_t>(ptx::size_bytes(v), 0);
    Allocation& a = device.memory->allocate(bytes, v.name, device.index);
    a.read_only = v.space == ptx::Space::const_;
    code.globals.push_back({v.name, a.base, bytes});
  };
  for (const auto& v : code.module.variables)
    place(v);
  for (const auto& f : code.module.functions) {
    for (const auto& v : f.variables)
      place(v);
  }
  for (const auto& v : code.module.variables) {
    if (find_global(code, v.name) != nullptr) initialize(code, device, v);
  }
  for (const auto& f : code.module.functions) {
    for (const auto& v : f.variables) {
      if (v.space == ptx::Space::global || v.space == ptx::Space::const_) {
        initialize(code, device, v);
      }
    }
  }
}

/// Variables in local memory, and parameters of calls, which lie there too.
void check_local(const ptx::Function& f) {
  std::int64_t bytes = 0;
  for (const auto* list : {&f.variables, &f.params, &f.returns}) {
    if (f.entry && list != &f.variables) continue;
    for (const auto& v : *list) {
      const bool local = v.space == ptx::Space::local || v.space == ptx::Space::param;
      if (local && ptx::size_bytes(v) > 0) bytes += align_up(ptx::size_bytes(v), 16);
      if (bytes > kMostLocalBytes) {
        fail("function " + f.name + " has " + std::to_string(bytes) +
             " bytes of local memory; a thread has " + std::to_string(kMostLocalBytes));
      }
    }
  }
}

void lay_out_params(const ptx::Function& f, FunctionCode& fc) {
  std::int64_t at = 0;
  for (const auto& p : f.params) {
    at = align_up(at, ptx::alignment_bytes(p));
    const std::int64_t bytes = ptx::size_bytes(p);
    fc.params.push_back({at, bytes, p.extents.empty() ? p.type : Type::b8});
    at += bytes;
  }
  fc.param_bytes = at;
}

std::uint32_t builtin(std::string_view name) {
  if (name == "vprintf") return kVprintf;
  if (name == "__assertfail") return kAssertfail;
  if (name == "malloc") return kMalloc;
  if (name == "free") return kFree;
  return kNoFunction;
}

}  // namespace

const GlobalVariable* find_global(const Code& code, std::string_view name) {
  for (const auto& g : code.globals) {
    if (g.name == name) return &g;
  }
  return nullptr;
}

std::uint64_t symbol_value(const Code& code, std::string_view name) {
  if (const GlobalVariable* g = find_global(code, name)) return g->address;
  if (auto f = code.function_index.find(name); f != code.function_index.end()) {
    return kFunctionAddress + f->second;
  }
  fail("unknown symbol '" + std::string(name) + "'; declare it before its use");
}

std::uint32_t function_number(const Code& code, std::string_view name) {
  const std::uint32_t special = builtin(name);
  if (special != kNoFunction) return special;
  auto it = code.function_index.find(name);
  return it == code.function_index.end() ? kNoFunction : it->second;
}

std::unique_ptr<Code> decode(const ptx::Module& module, Device& device) {
  auto code = std::make_unique<Code>();
  code->module = module;
  code->device = device.index;
  for (const auto& f : code->module.functions) {
    if (f.declaration) continue;
    code->function_index[f.name] = static_cast<std::uint32_t>(code->functions.size());
    FunctionCode& fc = code->functions.emplace_back();
    fc.name = f.name;
    fc.source = &f;
    if (f.entry) lay_out_params(f, fc);
    check_local(f);
  }
  find_shared_variables(*code);
  place_globals(*code, device);
  for (FunctionCode& fc : code->functions)
    decode_function(*code, fc);
  lay_out_shared(*code);
  return code;
}

}  // namespace tilewright::emu::detail

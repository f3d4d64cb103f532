// SPDX-License-Identifier: Apache-2.0
// printf and assertions as nvcc emits them: calls of vprintf and __assertfail.
#include "tilewright/debugging.h"

#include "lang/call.h"
#include "tilewright/control.h"

#include <algorithm>
#include <string>

namespace tilewright {

using lang::Callee;
using lang::Tracer;

namespace {

// CUDA Programming Guide, formatted output: "printf() can accept at most 32 arguments".
constexpr std::size_t kMostValues = 32;

[[noreturn]] void refuse(const std::string& message, SourceLoc at) {
  throw Error(ErrorKind::user, "printf_: " + message, at);
}

/// One conversion of a format: "%-8.3f".
struct Conversion {
  std::string text;
  bool wide = false;  ///< l or ll
  char letter = 0;
};

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

/// Reads the conversion at text[at] == '%', and moves behind it.
Conversion read_conversion(std::string_view text, std::size_t& at, SourceLoc where) {
  std::size_t begin = at++;
  Conversion conversion;
  while (at < text.size() && is_one_of(text[at], "-+ #0123456789."))
    ++at;
  std::size_t length = at;
  while (at < text.size() && text[at] == 'l')
    ++at;
  conversion.wide = at > length;
  if (at < text.size()) conversion.letter = text[at++];
  conversion.text = text.substr(begin, at - begin);
  std::string_view letters = conversion.wide ? "diuoxXeEfFgGaA" : "diuoxXceEfFgGaAp%";
  if (conversion.letter == 0 || !is_one_of(conversion.letter, letters)) {
    refuse("'" + conversion.text +
               "' is no conversion of device values; take %d %i %u %o %x %X %c %e %f %g %a or %p, "
               "and write texts and widths into the format",
           where);
  }
  return conversion;
}

std::vector<Conversion> conversions_of(std::string_view text, SourceLoc at) {
  std::vector<Conversion> found;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '%') {
      ++i;
      continue;
    }
    Conversion conversion = read_conversion(text, i, at);
    if (conversion.letter != '%') found.push_back(std::move(conversion));
  }
  return found;
}

bool is_real(const Conversion& conversion) { return is_one_of(conversion.letter, "eEfFgGaA"); }

/// The type in which C passes what the conversion prints.
Type passed_type(const Conversion& conversion) {
  if (is_real(conversion)) return f64;
  bool is_signed = is_one_of(conversion.letter, "dic");
  if (conversion.letter == 'p') return u64;
  if (conversion.wide) return is_signed ? s64 : u64;
  return is_signed ? s32 : u32;
}

/// The value as C passes it; nothing for another kind of value.
std::optional<Value> promoted(const Value& value, const Conversion& conversion, SourceLoc at) {
  Type type = value.type();
  Type passed = passed_type(conversion);
  if (is_real(conversion)) {
    if (!is_float(type)) return std::nullopt;
    return type == f64 ? value : value.to(f32, at).to(f64, at);
  }
  if (type == pred && bits(passed) == 32) return select(Arg(value, at), Arg(1, at), Arg(0, at));
  if (is_bits(type) && bits(type) == bits(passed)) return value.bitcast(passed, at);
  if (!is_integer(type)) return std::nullopt;
  if (bits(type) == 64 || bits(passed) == 64) {
    if (bits(type) != bits(passed)) return std::nullopt;
    return value;
  }
  return value.to(bits(type) == 32 ? type : is_signed(type) ? s32 : u32, at);
}

Value passed(const Arg& argument, const Conversion& conversion, SourceLoc at) {
  if (argument.is_literal()) {
    std::string what = "printf_ with " + conversion.text;
    return argument.as(passed_type(conversion), what.c_str());
  }
  std::optional<Value> value = promoted(argument.settled(), conversion, at);
  if (value) return *value;
  refuse(conversion.text + " prints " +
             (is_real(conversion)                   ? "floating-point types"
              : bits(passed_type(conversion)) == 64 ? "64-bit integers"
                                                    : "integers of up to 32 bits") +
             ", the value is " + std::string(name(argument.value().type())) +
             "; take another conversion, or convert with .to()",
         at);
}

/// The kernel's variable for the values of a call, grown to `size_bytes`.
ptx::SymbolId buffer_of(Tracer& tracer, std::int64_t size_bytes) {
  std::vector<ptx::Variable>& variables = tracer.function().variables;
  std::string name = tracer.function().name + "$print";
  auto found = std::find_if(variables.begin(), variables.end(),
                            [&](const ptx::Variable& v) { return v.name == name; });
  if (found == variables.end()) {
    ptx::Variable variable;
    variable.space = ptx::Space::local;
    variable.alignment = 8;
    variable.name = name;
    variable.extents = {0};
    found = variables.insert(variables.end(), std::move(variable));
  }
  found->extents[0] = std::max(found->extents[0], size_bytes);
  return tracer.module().symbol_id(name);
}

/// Stores the values as C lays out variable arguments, and gives the generic address.
ptx::Operand store_values(Tracer& tracer, const std::vector<Value>& values, SourceLoc at) {
  if (values.empty()) return ptx::imm(0);
  std::vector<Type> types;
  types.reserve(values.size());
  for (const Value& value : values)
    types.push_back(value.type());
  std::vector<std::int64_t> offsets = lang::structure_offsets(types);
  ptx::SymbolId buffer = buffer_of(tracer, (offsets.back() + 8) / 8 * 8);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ptx::Operand value = ptx::reg(tracer.reg_of(values[i], at));
    const char* op = bytes(values[i].type()) == 8 ? "st.local.b64" : "st.local.b32";
    tracer.emit(op, {ptx::address_symbol(buffer, offsets[i]), value}, at);
  }
  ptx::RegId place = tracer.new_reg(u64);
  ptx::RegId generic = tracer.new_reg(u64);
  tracer.emit("mov.u64", {ptx::reg(place), ptx::symbol(buffer)}, at);
  tracer.emit("cvta.local.u64", {ptx::reg(generic), ptx::reg(place)}, at);
  return ptx::reg(generic);
}

}  // namespace

namespace detail {

void print(const CallText& format, std::initializer_list<Arg> values) {
  SourceLoc at = format.at();
  Tracer& tracer = Tracer::current("printf_", at);
  std::vector<Conversion> conversions = conversions_of(format.text(), at);
  if (conversions.size() != values.size() || values.size() > kMostValues) {
    refuse("the format has " + std::to_string(conversions.size()) + " conversions and the call " +
               std::to_string(values.size()) + " values; give one value each, at most 32",
           at);
  }
  std::vector<Value> stored;
  for (const Arg& value : values)
    stored.push_back(passed(value, conversions[stored.size()], at));
  const Callee vprintf{"vprintf", {b32}, {b64, b64}};
  lang::declare_extern(tracer, vprintf);
  ptx::Operand buffer = store_values(tracer, stored, at);
  ptx::Operand text = lang::text_address(tracer, format.text(), at);
  lang::call(tracer, vprintf, {text, buffer}, at);
}

}  // namespace detail

void assert_(const Arg& condition, const char* text) {
  SourceLoc at = condition.at();
  Tracer& tracer = Tracer::current("assert_", at);
  Value holds = condition.as(pred, "assert_");
  if (holds.is_constant() && holds.constant() != 0) return;
  const Callee fail{"__assertfail", {}, {b64, b64, b32, b64, b64}};
  lang::declare_extern(tracer, fail);
  if_(!Arg(holds, at), [&] {
    ptx::Operand message = lang::text_address(tracer, text, at);
    ptx::Operand file = lang::text_address(tracer, at.file, at);
    ptx::Operand function = lang::text_address(tracer, tracer.function().name, at);
    constexpr int kCharBytes = 1;
    lang::call(tracer, fail, {message, file, ptx::imm(at.line), function, ptx::imm(kCharBytes)},
               at);
  });
}

}  // namespace tilewright

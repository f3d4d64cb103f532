// SPDX-License-Identifier: Apache-2.0
// Inline PTX: the text is parsed as a function of its own and its instructions are taken over.
#include "tilewright/inline_ptx.h"

#include "lang/tracer.h"

#include <string>

namespace tilewright {

using lang::Tracer;

namespace {

constexpr const char* kPlaceholder = "%tilewright_operand";

std::string_view register_type(Type type) {
  if (type == pred) return "pred";
  return bits(type) <= 16 ? "b16" : bits(type) == 32 ? "b32" : "b64";
}

/// $3 becomes %tilewright_operand3.
std::string with_registers(std::string_view text, std::size_t operands, SourceLoc at) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool digit = i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
    if (text[i] != '$' || !digit) {
      out += text[i];
      continue;
    }
    std::size_t number = 0;
    while (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9' && number < 1000) {
      number = number * 10 + static_cast<std::size_t>(text[++i] - '0');
    }
    if (number >= operands) {
      throw Error(ErrorKind::user,
                  "$" + std::to_string(number) + " but there are " + std::to_string(operands) +
                      " results and arguments; they count from $0",
                  at);
    }
    out += kPlaceholder + std::to_string(number);
  }
  return out;
}

std::string function_text(std::string_view body, const std::vector<Type>& operands,
                          ptx::Target target, SourceLoc at) {
  std::string text =
      ".version 9.0 .target " + to_string(target) + " .address_size 64 .visible .entry f() { ";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    text += ".reg ." + std::string(register_type(operands[i])) + " " + kPlaceholder +
            std::to_string(i) + "; ";
  }
  return text + with_registers(body, operands.size(), at) + "\n}";
}

void remap(ptx::Operand& operand, const std::vector<ptx::RegId>& registers,
           const std::vector<ptx::LabelId>& labels) {
  using Kind = ptx::Operand::Kind;
  if (operand.kind == Kind::reg || operand.kind == Kind::address_reg)
    operand.id = registers[operand.id];
  if (operand.kind == Kind::label) operand.id = labels[operand.id];
  for (ptx::Operand& elem : operand.elems)
    remap(elem, registers, labels);
}

void take_over(const ptx::Module& parsed, Tracer& tracer, std::vector<ptx::RegId> operands,
               SourceLoc at) {
  const ptx::Function& function = parsed.functions.front();
  if (!function.variables.empty()) {
    throw Error(ErrorKind::user,
                "the text declares the variable " + function.variables.front().name +
                    "; only registers may be declared, use shared() for memory",
                at);
  }
  std::vector<ptx::RegId> registers;
  for (const ptx::Register& declared : function.registers) {  // in an order of the parser's
    std::size_t operand = 0;
    while (operand < operands.size() && declared.name != kPlaceholder + std::to_string(operand))
      ++operand;
    bool own = operand == operands.size();
    registers.push_back(own ? tracer.new_reg(declared.type) : operands[operand]);
  }
  std::vector<ptx::LabelId> labels;
  for (std::size_t i = 0; i < function.labels.size(); ++i)
    labels.push_back(tracer.new_label("inline"));
  for (const ptx::Stmt& stmt : function.body) {
    if (const auto* label = std::get_if<ptx::Label>(&stmt)) {
      tracer.emit_label(labels[label->id]);
    } else if (const auto* instr = std::get_if<ptx::Instr>(&stmt)) {
      ptx::Instr moved = *instr;
      moved.site = tracer.site(at);
      if (moved.guard) moved.guard->reg = registers[moved.guard->reg];
      for (ptx::Operand& operand : moved.operands)
        remap(operand, registers, labels);
      tracer.function().body.emplace_back(std::move(moved));
    } else {
      tracer.emit_directive(std::get<ptx::Directive>(stmt).text);
    }
  }
}

}  // namespace

std::vector<Value> inline_ptx(std::string_view text, std::initializer_list<Type> results,
                              std::initializer_list<Arg> arguments, SourceLoc at) {
  Tracer& tracer = Tracer::current("inline_ptx", at);
  std::vector<Type> types(results);
  std::vector<ptx::RegId> registers;
  for (Type type : results)
    registers.push_back(tracer.new_reg(type));
  for (const Arg& argument : arguments) {
    Value value = argument.natural();
    types.push_back(value.type());
    registers.push_back(tracer.reg_of(value, at));
  }
  try {
    ptx::Module parsed = ptx::parse(function_text(text, types, tracer.target(), at), "inline_ptx");
    ptx::check_capabilities(parsed);
    for (const ptx::Stmt& stmt : parsed.functions.front().body) {
      if (const auto* instr = std::get_if<ptx::Instr>(&stmt)) {
        ptx::check_instruction(parsed, parsed.functions.front(), *instr);
      }
    }
    take_over(parsed, tracer, registers, at);
  } catch (const Error& error) {
    throw Error(error.kind(), "inline_ptx: " + error.message(), at);
  }
  std::vector<Value> values;
  std::size_t i = 0;
  for (Type type : results)
    values.push_back(tracer.result(type, registers[i++], Uniformity::thread));
  return values;
}

}  // namespace tilewright

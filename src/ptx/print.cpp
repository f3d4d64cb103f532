// SPDX-License-Identifier: Apache-2.0
// Prints a module as PTX text.
#include "tilewright/module.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace tilewright::ptx {
namespace {

class Printer {
 public:
  Printer(Module& module, LineInfo line_info) : module_(module), line_info_(line_info) {}

  std::string run() {
    out_.reserve(4096);
    header();
    for (Function& f : module_.functions)
      if (f.declaration) function(f);
    declare_initializers_functions();
    for (const Variable& v : module_.variables) {
      linkage(v.linkage);
      variable(v);
      put(";\n");
    }
    if (!module_.variables.empty()) put("\n");
    for (Function& f : module_.functions)
      if (!f.declaration) function(f);
    for (const std::string& d : module_.directives)
      put(d, ";\n");
    // .loc names the inlined function by a label here; a site has no name, so that all share one.
    if (any_inlined_)
      put(".section .debug_str\n{\n$L__info_inlined:\n\t.b8 105,110,108,105,110,101,100,0\n}\n");
    return std::move(out_);
  }

 private:
  template <typename... Parts>
  void put(const Parts&... parts) {
    (append(parts), ...);
  }
  void append(std::string_view text) {
    out_ += text;
    line_ += static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n'));
  }
  void append(std::int64_t value) {
    char buffer[24];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    out_.append(buffer, end);
  }
  void append(std::uint64_t value) {
    char buffer[24];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    out_.append(buffer, end);
  }
  void append(int value) { append(std::int64_t{value}); }
  void append(std::uint32_t value) { append(std::uint64_t{value}); }

  void hex(std::uint64_t value, int digits) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (int i = digits - 1; i >= 0; --i)
      out_ += kDigits[value >> (4 * i) & 15];
  }

  void header() {
    const Version version =
        module_.version == Version{} ? required_version(module_) : module_.version;
    put(".version ", version.major, ".", version.minor, "\n");
    put(".target ", to_string(module_.target), module_.target_options, "\n");
    put(".address_size ", module_.address_size, "\n\n");
    if (line_info_ == LineInfo::off) return;
    for (std::size_t i = 1; i < module_.files.size(); ++i)
      if (!module_.files[i].empty())
        put(".file ", std::uint64_t{i}, " \"", module_.files[i], "\"\n");
    put("\n");
  }

  void linkage(Linkage value) {
    switch (value) {
      case Linkage::internal:
        return;
      case Linkage::visible:
        return put(".visible ");
      case Linkage::extern_:
        return put(".extern ");
      case Linkage::weak:
        return put(".weak ");
      case Linkage::common:
        return put(".common ");
    }
  }

  static std::string_view space(Space value) {
    switch (value) {
      case Space::generic:
        return "";
      case Space::reg:
        return ".reg";
      case Space::const_:
        return ".const";
      case Space::global:
        return ".global";
      case Space::local:
        return ".local";
      case Space::param:
        return ".param";
      case Space::shared:
        return ".shared";
    }
    return "";
  }

  void variable(const Variable& v) {
    const bool is_parameter = !v.attributes.empty() && v.attributes.starts_with(".ptr");
    put(space(v.space), " ");
    if (!v.attributes.empty() && !is_parameter) put(v.attributes, " ");
    if (v.alignment != 0) put(".align ", v.alignment, " ");
    if (v.vector != 1) put(".v", v.vector, " ");
    put(".", name(v.type), " ");
    if (is_parameter) put(v.attributes, " ");
    put(v.name);
    for (const std::int64_t extent : v.extents)
      if (extent == 0)
        put("[]");
      else
        put("[", extent, "]");
    if (v.init) initializer(v, *v.init);
  }

  void initializer(const Variable& v, const Initializer& init) {
    const bool is_list = !v.extents.empty() || v.vector != 1;
    put(is_list ? " = {" : " = ");
    const auto width = static_cast<std::size_t>(bytes(v.type));
    std::size_t next_address = 0;
    for (std::size_t at = 0; at + width <= init.bytes.size(); at += width) {
      if (at != 0) put(", ");
      if (next_address < init.addresses.size() &&
          init.addresses[next_address].at == static_cast<std::int64_t>(at)) {
        const InitAddress& a = init.addresses[next_address++];
        put(a.generic ? "generic(" : "", module_.symbols[a.symbol], a.generic ? ")" : "");
        if (a.offset != 0) put(a.offset < 0 ? "" : "+", a.offset);
        continue;
      }
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < width && i < 8; ++i)
        value |= std::uint64_t{init.bytes[at + i]} << (8 * i);
      element(v.type, value);
    }
    if (is_list) put("}");
  }

  void element(Type type, std::uint64_t value) {
    if (type == Type::f32 || type == Type::f64) {
      put(type == Type::f32 ? "0f" : "0d");
      hex(value, type == Type::f32 ? 8 : 16);
    } else if (is_signed(type)) {
      const int shift = 64 - bits(type);
      put(static_cast<std::int64_t>(value << shift) >> shift);
    } else {
      put(value);
    }
  }

  void parameters(const std::vector<Variable>& list) {
    put("(");
    for (std::size_t i = 0; i < list.size(); ++i) {
      put(i == 0 ? "\n\t" : ",\n\t");
      variable(list[i]);
    }
    put(list.empty() ? ")" : "\n)");
  }

  void function_head(const Function& f) {
    linkage(f.linkage);
    put(f.entry ? ".entry " : ".func ");
    if (!f.returns.empty()) {
      parameters(f.returns);
      put(" ");
    }
    put(f.name);
    if (!f.params.empty() || !f.entry) parameters(f.params);
    put("\n");
  }

  /// A variable's initialiser may name a function, which is then declared before its definition.
  void declare_initializers_functions() {
    std::set<std::string_view> declared;
    for (const Function& f : module_.functions)
      if (f.declaration) declared.insert(f.name);
    for (const Variable& v : module_.variables) {
      if (!v.init) continue;
      for (const InitAddress& address : v.init->addresses) {
        const Function* f = module_.find_function(module_.symbols[address.symbol]);
        if (f == nullptr || !declared.insert(f->name).second) continue;
        function_head(*f);
        put(f->tuning.noreturn ? ".noreturn\n;\n\n" : ";\n\n");
      }
    }
  }

  void function(Function& f) {
    f.line = line_;
    function_head(f);
    tuning(f.tuning);
    for (const std::string& d : f.directives)
      put(d, "\n");
    if (f.declaration) return put(";\n\n");
    put("{\n");
    registers(f);
    for (const Variable& v : f.variables) {
      put("\t");
      variable(v);
      put(";\n");
    }
    tables(f);
    put("\n");
    site_ = 0;
    function_ = &f;
    for (Stmt& stmt : f.body)
      statement(stmt);
    put("}\n\n");
  }

  void tuning(const Tuning& t) {
    const auto extents = [&](std::string_view word, const std::array<int, 3>& value) {
      if (value[0] != 0) put(word, " ", value[0], ", ", value[1], ", ", value[2], "\n");
    };
    const auto number = [&](std::string_view word, int value) {
      if (value != 0) put(word, " ", value, "\n");
    };
    if (t.explicitcluster) put(".explicitcluster\n");
    extents(".reqnctapercluster", t.reqnctapercluster);
    number(".maxclusterrank", t.maxclusterrank);
    extents(".maxntid", t.maxntid);
    extents(".reqntid", t.reqntid);
    number(".minnctapersm", t.minnctapersm);
    number(".maxnreg", t.maxnreg);
    if (t.noreturn) put(".noreturn\n");
  }

  /// Names such as %r12 that share prefix and type are declared as a range, if it is dense.
  void registers(const Function& f) {
    std::size_t skip = 0;  // register parameters come first and are declared above
    for (const auto* list : {&f.returns, &f.params})
      for (const Variable& v : *list)
        skip += v.space == Space::reg ? 1U : 0U;
    struct Group {
      Type type;
      std::uint64_t high = 0, count = 0;
      bool one_type = true;
    };
    std::map<std::string_view, Group> groups;
    const auto split = [](std::string_view text) {
      std::size_t begin = text.size();
      while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9')
        --begin;
      const bool canonical = begin < text.size() && text.size() - begin < 9 &&
                             (text[begin] != '0' || begin + 1 == text.size());
      return canonical ? begin : text.size();
    };
    for (std::size_t i = skip; i < f.registers.size(); ++i) {
      const std::string_view text = f.registers[i].name;
      const std::size_t at = split(text);
      if (at == text.size()) continue;
      std::uint64_t number = 0;
      std::from_chars(text.data() + at, text.data() + text.size(), number);
      Group& g = groups.try_emplace(text.substr(0, at), Group{f.registers[i].type}).first->second;
      g.high = std::max(g.high, number);
      ++g.count;
      g.one_type = g.one_type && g.type == f.registers[i].type;
    }
    const auto dense = [](const Group& g) { return g.one_type && g.high < 4 * g.count + 64; };
    for (const auto& [prefix, g] : groups)
      if (dense(g)) put("\t.reg .", name(g.type), " ", prefix, "<", g.high + 1, ">;\n");
    for (std::size_t i = skip; i < f.registers.size(); ++i) {
      const std::string_view text = f.registers[i].name;
      const std::size_t at = split(text);
      if (at != text.size() && dense(groups.at(text.substr(0, at)))) continue;
      put("\t.reg .", name(f.registers[i].type), " ", text, ";\n");
    }
  }

  void tables(const Function& f) {
    for (const BranchTargets& t : f.branch_targets) {
      put(f.labels[t.name], ": .branchtargets");
      for (std::size_t i = 0; i < t.targets.size(); ++i)
        put(i == 0 ? " " : ", ", f.labels[t.targets[i]]);
      put(";\n");
    }
    for (const CallPrototype& p : f.prototypes) {
      put(f.labels[p.name]);
      if (!p.targets.empty()) {
        put(": .calltargets");
        for (std::size_t i = 0; i < p.targets.size(); ++i)
          put(i == 0 ? " " : ", ", module_.symbols[p.targets[i]]);
      } else {
        put(": .callprototype ");
        if (!p.returns.empty()) parameters(p.returns);
        put(p.returns.empty() ? "_ " : " _ ");
        parameters(p.params);
        if (p.noreturn) put(" .noreturn");
      }
      put(";\n");
    }
  }

  void statement(Stmt& stmt) {
    if (auto* instr = std::get_if<Instr>(&stmt)) return instruction(*instr);
    if (const auto* label = std::get_if<Label>(&stmt))
      return put(function_->labels[label->id], ":\n");
    put("\t", std::get<Directive>(stmt).text, ";\n");
  }

  void instruction(Instr& instr) {
    location(instr.site);
    instr.line = line_;
    put("\t");
    if (instr.guard)
      put(instr.guard->negated ? "@!" : "@", function_->registers[instr.guard->reg].name, " ");
    put(instr.op.row().opcode);
    for (const Mod slot : instr.op.slots)
      if (slot.id != 0) put(".", name(slot));
    for (std::size_t i = 0; i < instr.operands.size(); ++i) {
      put(i == 0 ? " " : ", ");
      operand(instr.operands[i]);
    }
    put(";\n");
  }

  void location(SiteId id) {
    if (line_info_ == LineInfo::off || id == 0 || id == site_) return;
    site_ = id;
    const Site& site = module_.sites[id];
    if (module_.files[site.file].empty()) return;
    const Site& parent = module_.sites[site.parent];
    const bool is_inlined =
        site.parent != 0 && site.parent < id && !module_.files[parent.file].empty();
    if (is_inlined) location(site.parent);  // ptxas looks for an earlier .loc of the call
    site_ = id;
    put("\t.loc ", site.file, " ", site.line, " ", site.column);
    if (is_inlined) {
      put(", function_name $L__info_inlined, inlined_at ", parent.file, " ", parent.line, " ",
          parent.column);
      any_inlined_ = true;
    }
    put("\n");
  }

  void sequence(const std::vector<Operand>& elems) {
    for (std::size_t i = 0; i < elems.size(); ++i) {
      if (i != 0) put(", ");
      operand(elems[i]);
    }
  }

  void address_end(const Operand& o) {
    if (o.value != 0) put("+", o.value);
    if (!o.elems.empty()) {
      put(", {");
      sequence(o.elems);
      put("}");
    }
    put("]");
  }

  void operand(const Operand& o) {
    switch (o.kind) {
      case Operand::Kind::none:
        return;
      case Operand::Kind::reg:
        return put(o.negated ? "!" : "", function_->registers[o.id].name);
      case Operand::Kind::imm:
        return immediate(o);
      case Operand::Kind::special: {
        put(special_registers()[o.id].name);
        if (o.component >= 0)
          put(".", std::string_view("xyzw").substr(static_cast<std::size_t>(o.component), 1));
        return;
      }
      case Operand::Kind::symbol:
        put(module_.symbols[o.id]);
        if (o.value != 0) put(o.value < 0 ? "" : "+", o.value);
        return;
      case Operand::Kind::label:
        return put(function_->labels[o.id]);
      case Operand::Kind::sink:
        return put("_");
      case Operand::Kind::vector:
        put("{");
        sequence(o.elems);
        return put("}");
      case Operand::Kind::address_reg:
        put("[", function_->registers[o.id].name);
        return address_end(o);
      case Operand::Kind::address_symbol:
        put("[", module_.symbols[o.id]);
        return address_end(o);
      case Operand::Kind::address_imm: {
        put("[", static_cast<std::uint64_t>(o.value));
        Operand rest = o;
        rest.value = 0;
        return address_end(rest);
      }
      case Operand::Kind::list:
        put("(");
        sequence(o.elems);
        return put(")");
      case Operand::Kind::pair:
        operand(o.elems[0]);
        put("|");
        return operand(o.elems[1]);
    }
  }

  void immediate(const Operand& o) {
    if (o.type == Type::f32 || o.type == Type::f64)
      return element(o.type, static_cast<std::uint64_t>(o.value));
    if (o.type == Type::u64) return put(static_cast<std::uint64_t>(o.value));
    put(o.value);
  }

  Module& module_;
  LineInfo line_info_;
  const Function* function_ = nullptr;
  std::string out_;
  std::uint32_t line_ = 1;
  SiteId site_ = 0;
  bool any_inlined_ = false;
};

}  // namespace

std::string print(Module& module, LineInfo line_info) { return Printer(module, line_info).run(); }

}  // namespace tilewright::ptx

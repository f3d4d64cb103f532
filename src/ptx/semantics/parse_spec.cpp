// SPDX-License-Identifier: Apache-2.0
// Takes a full opcode apart, and says what operands its meaning has.
#include "ptx/semantics/spec.h"

namespace tilewright::ptx::semantics {
namespace {

template <class E>
struct Word {
  std::string_view text;
  E value;
};

// clang-format off
constexpr Word<LaneOp> kOps[] = {
    {"add", LaneOp::add}, {"sub", LaneOp::sub}, {"mul", LaneOp::mul}, {"mad", LaneOp::mad},
    {"mul24", LaneOp::mul24}, {"mad24", LaneOp::mad24}, {"sad", LaneOp::sad}, {"div", LaneOp::div},
    {"rem", LaneOp::rem}, {"abs", LaneOp::abs}, {"neg", LaneOp::neg}, {"min", LaneOp::min},
    {"max", LaneOp::max}, {"fma", LaneOp::fma}, {"addc", LaneOp::addc}, {"subc", LaneOp::subc},
    {"madc", LaneOp::madc}, {"and", LaneOp::and_}, {"or", LaneOp::or_}, {"xor", LaneOp::xor_},
    {"not", LaneOp::not_}, {"cnot", LaneOp::cnot}, {"lop3", LaneOp::lop3}, {"shl", LaneOp::shl},
    {"shr", LaneOp::shr}, {"shf", LaneOp::shf}, {"bfe", LaneOp::bfe}, {"bfi", LaneOp::bfi},
    {"bfind", LaneOp::bfind}, {"bmsk", LaneOp::bmsk}, {"szext", LaneOp::szext}, {"brev", LaneOp::brev},
    {"popc", LaneOp::popc}, {"clz", LaneOp::clz}, {"prmt", LaneOp::prmt}, {"dp4a", LaneOp::dp4a},
    {"dp2a", LaneOp::dp2a}, {"set", LaneOp::set}, {"setp", LaneOp::setp}, {"selp", LaneOp::selp},
    {"slct", LaneOp::slct}, {"mov", LaneOp::mov}, {"cvt", LaneOp::cvt}, {"copysign", LaneOp::copysign},
    {"testp", LaneOp::testp}, {"rcp", LaneOp::rcp}, {"sqrt", LaneOp::sqrt}, {"rsqrt", LaneOp::rsqrt},
    {"sin", LaneOp::sin}, {"cos", LaneOp::cos}, {"lg2", LaneOp::lg2}, {"ex2", LaneOp::ex2},
    {"tanh", LaneOp::tanh}, {"fns", LaneOp::fns}, {"createpolicy", LaneOp::createpolicy},
};
constexpr Word<Rounding> kRoundings[] = {
    {"rn", Rounding::rn}, {"rz", Rounding::rz}, {"rm", Rounding::rm}, {"rp", Rounding::rp},
    {"rna", Rounding::rna}, {"rni", Rounding::rni}, {"rzi", Rounding::rzi}, {"rmi", Rounding::rmi},
    {"rpi", Rounding::rpi},
};
constexpr Word<Compare> kCompares[] = {
    {"eq", Compare::eq}, {"ne", Compare::ne}, {"lt", Compare::lt}, {"le", Compare::le},
    {"gt", Compare::gt}, {"ge", Compare::ge}, {"lo", Compare::lo}, {"ls", Compare::ls},
    {"hi", Compare::hi}, {"hs", Compare::hs}, {"equ", Compare::equ}, {"neu", Compare::neu},
    {"ltu", Compare::ltu}, {"leu", Compare::leu}, {"gtu", Compare::gtu}, {"geu", Compare::geu},
    {"num", Compare::num}, {"nan", Compare::nan},
};
constexpr Word<Bool> kBools[] = {{"and", Bool::and_}, {"or", Bool::or_}, {"xor", Bool::xor_}};
constexpr Word<Mode> kModes[] = {
    {"f4e", Mode::f4e}, {"b4e", Mode::b4e}, {"rc8", Mode::rc8}, {"ecl", Mode::ecl},
    {"ecr", Mode::ecr}, {"rc16", Mode::rc16}, {"clamp", Mode::clamp}, {"wrap", Mode::wrap},
    {"finite", Mode::finite}, {"infinite", Mode::infinite}, {"number", Mode::number},
    {"notanumber", Mode::notanumber}, {"normal", Mode::normal}, {"subnormal", Mode::subnormal},
};
constexpr Word<std::uint32_t> kFlags[] = {
    {"ftz", kFtz}, {"sat", kSat}, {"satfinite", kSatfinite}, {"relu", kRelu}, {"approx", kApprox},
    {"full", kFull}, {"NaN", kNan}, {"lo", kLo}, {"hi", kHi}, {"wide", kWide}, {"cc", kCc},
    {"shiftamt", kShiftamt}, {"pack", kPack}, {"abs", kAbs}, {"oob", kOob},
};
constexpr Word<int> kPackWidths[] = {{"u8", 8}, {"s8", -8}, {"u4", 4}, {"s4", -4}, {"u2", 2}, {"s2", -2}};
constexpr Word<Type> kTypes[] = {
    {"pred", Type::pred}, {"b8", Type::b8}, {"b16", Type::b16}, {"b32", Type::b32}, {"b64", Type::b64},
    {"u8", Type::u8}, {"u16", Type::u16}, {"u32", Type::u32}, {"u64", Type::u64},
    {"s8", Type::s8}, {"s16", Type::s16}, {"s32", Type::s32}, {"s64", Type::s64},
    {"f16", Type::f16}, {"bf16", Type::bf16}, {"tf32", Type::tf32}, {"f32", Type::f32}, {"f64", Type::f64},
    {"f16x2", Type::f16x2}, {"bf16x2", Type::bf16x2}, {"f32x2", Type::f32x2},
    {"u16x2", Type::u16x2}, {"s16x2", Type::s16x2},
    {"e4m3x2", Type::e4m3x2}, {"e5m2x2", Type::e5m2x2}, {"e2m3x2", Type::e2m3x2},
    {"e3m2x2", Type::e3m2x2}, {"e2m1x2", Type::e2m1x2}, {"ue8m0x2", Type::ue8m0x2},
};
// clang-format on

template <class E, std::size_t N>
bool find(const Word<E> (&words)[N], std::string_view text, E& value) {
  for (const Word<E>& word : words) {
    if (word.text == text) {
      value = word.value;
      return true;
    }
  }
  return false;
}

/// `l.clamp` of shf, `xorsign.abs` of min: two words that mean one thing.
bool read_pair(std::string_view word, std::string_view next, Spec& spec) {
  if (word == "xorsign" && next == "abs") {
    spec.flags |= kXorsignAbs;
    return true;
  }
  if (spec.op != LaneOp::shf || (word != "l" && word != "r")) return false;
  if (next != "clamp" && next != "wrap") return false;
  const bool clamps = next == "clamp";
  spec.mode = word == "l" ? (clamps ? Mode::l_clamp : Mode::l_wrap)
                          : (clamps ? Mode::r_clamp : Mode::r_wrap);
  return true;
}

bool read_word(std::string_view word, Spec& spec) {
  const bool compares = spec.op == LaneOp::set || spec.op == LaneOp::setp;
  if (compares && spec.compare == Compare::none) return find(kCompares, word, spec.compare);
  if (find(kBools, word, spec.combine)) return compares || spec.op == LaneOp::lop3;
  if (find(kRoundings, word, spec.rounding) || find(kModes, word, spec.mode)) return true;
  std::uint32_t flag = 0;
  if (find(kFlags, word, flag)) {
    spec.flags |= flag;
    return true;
  }
  if (spec.type_count == 3) return false;
  if (spec.has(kPack) && spec.type_count == 0) find(kPackWidths, word, spec.pack_bits);
  Type& type = spec.types[spec.type_count++];
  return find(kTypes, word, type) ||
         spec.pack_bits != 0;  // the four- and two-bit types have no Type
}

std::string_view take_word(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  const std::string_view word = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  return word;
}

Lanes lanes_of(Type type) {
  if (type == Type::pred) return Lanes::pred;
  if (type == Type::none) return Lanes::none;
  return bits(type) == 64 ? Lanes::b64 : Lanes::b32;
}

int source_count(const Spec& spec) {
  if (spec.sources != 0) return spec.sources;
  switch (spec.op) {
    case LaneOp::abs:
    case LaneOp::neg:
    case LaneOp::not_:
    case LaneOp::cnot:
    case LaneOp::bfind:
    case LaneOp::brev:
    case LaneOp::popc:
    case LaneOp::clz:
    case LaneOp::mov:
    case LaneOp::testp:
    case LaneOp::rcp:
    case LaneOp::sqrt:
    case LaneOp::rsqrt:
    case LaneOp::sin:
    case LaneOp::cos:
    case LaneOp::lg2:
    case LaneOp::ex2:
    case LaneOp::tanh:
      return 1;
    case LaneOp::createpolicy:
      return 0;
    case LaneOp::fns:
    case LaneOp::mad:
    case LaneOp::mad24:
    case LaneOp::sad:
    case LaneOp::fma:
    case LaneOp::madc:
    case LaneOp::shf:
    case LaneOp::bfe:
    case LaneOp::prmt:
    case LaneOp::dp4a:
    case LaneOp::dp2a:
    case LaneOp::selp:
    case LaneOp::slct:
      return 3;
    case LaneOp::bfi:
    case LaneOp::lop3:
      return 4;
    default:
      return 2;
  }
}

void describe_convert(const Spec& spec, Meaning& meaning) {
  meaning.dst[0] = lanes_of(spec.types[0]);
  meaning.src[0] = lanes_of(spec.types[1]);
  if (spec.has(kPack)) {  // d, a, b and, with a third type, c
    meaning.dst[0] = meaning.src[0] = meaning.src[1] = Lanes::b32;
    if (spec.type_count == 3) meaning.src[2] = Lanes::b32;
  } else if (is_packed(spec.types[0]) && spec.types[1] == Type::f32) {
    meaning.src[1] = Lanes::b32;
  }
}

void describe_compare(const Spec& spec, Meaning& meaning) {
  const bool predicate = spec.op == LaneOp::setp;
  const Type compared = predicate ? spec.types[0] : spec.types[1];
  meaning.dst[0] = predicate ? Lanes::pred : lanes_of(spec.types[0]);
  meaning.dst[1] = predicate ? Lanes::pred : Lanes::none;
  meaning.src[0] = meaning.src[1] = lanes_of(compared);
  meaning.src[2] = spec.combine == Bool::none ? Lanes::none : Lanes::pred;
}

void describe_carry(const Spec& spec, Meaning& meaning) {
  meaning.reads_carry =
      spec.op == LaneOp::addc || spec.op == LaneOp::subc || spec.op == LaneOp::madc;
  meaning.writes_carry = spec.has(kCc);
}

/// Operands that are not of the opcode's first type.
void describe_exceptions(const Spec& spec, Meaning& meaning) {
  switch (spec.op) {
    case LaneOp::shl:
    case LaneOp::shr:
      meaning.src[1] = Lanes::b32;
      break;
    case LaneOp::bfe:
      meaning.src[1] = meaning.src[2] = Lanes::b32;
      break;
    case LaneOp::bfi:
      meaning.src[2] = meaning.src[3] = Lanes::b32;
      break;
    case LaneOp::bfind:
    case LaneOp::popc:
    case LaneOp::clz:
      meaning.dst[0] = Lanes::b32;
      break;
    case LaneOp::testp:
      meaning.dst[0] = Lanes::pred;
      break;
    case LaneOp::selp:
      meaning.src[2] = Lanes::pred;
      break;
    case LaneOp::slct:
      meaning.src[2] = Lanes::b32;
      break;
    case LaneOp::lop3:
      if (spec.combine != Bool::none) meaning.dst[1] = meaning.src[4] = Lanes::pred;
      break;
    case LaneOp::mul:
    case LaneOp::mad:
      if (spec.has(kWide)) {
        const bool to64 = bits(spec.types[0]) == 32;
        meaning.dst[0] = to64 ? Lanes::b64 : Lanes::b32;
        if (spec.op == LaneOp::mad) meaning.src[2] = meaning.dst[0];
      }
      break;
    default:
      break;
  }
}

}  // namespace

Spec parse_spec(std::string_view opcode) {
  Spec spec;
  if (opcode.empty() || opcode.back() == '.') return {};
  std::string_view rest = opcode;
  if (!find(kOps, take_word(rest), spec.op)) return {};
  if (spec.op == LaneOp::createpolicy) {  // its words choose a policy that nothing here depends on
    spec.types[spec.type_count++] = Type::b64;
    return spec;
  }
  while (!rest.empty()) {
    const std::string_view word = take_word(rest);
    std::string_view ahead = rest;
    if (read_pair(word, take_word(ahead), spec)) {
      rest = ahead;
      continue;
    }
    if (!read_word(word, spec)) return {};
  }
  return spec.type_count == 0 ? Spec{} : spec;
}

void describe(const Spec& spec, Meaning& meaning) {
  describe_carry(spec, meaning);
  meaning.accuracy = accuracy_of(spec);
  if (spec.op == LaneOp::cvt) return describe_convert(spec, meaning);
  if (spec.op == LaneOp::set || spec.op == LaneOp::setp) return describe_compare(spec, meaning);
  const Lanes lanes = lanes_of(spec.types[0]);
  meaning.dst[0] = lanes;
  for (int i = 0; i < source_count(spec); ++i)
    meaning.src[static_cast<std::size_t>(i)] = lanes;
  describe_exceptions(spec, meaning);
}

}  // namespace tilewright::ptx::semantics

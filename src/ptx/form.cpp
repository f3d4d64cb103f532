// SPDX-License-Identifier: Apache-2.0
// Opcodes: from text to a row and its chosen words, and back.
#include "tilewright/form.h"

#include "ptx/form_index.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tilewright::ptx {

using detail::FormIndex;

std::string_view name(Mod mod) { return FormIndex::get().word(mod); }
Mod mod(std::string_view word) { return FormIndex::get().find(word); }
Type type_of(Mod mod) { return FormIndex::get().type(mod); }
std::span<const Form> forms() { return FormIndex::get().rows(); }

bool Opcode::has(Mod word) const {
  return word.id != 0 && std::find(slots.begin(), slots.end(), word) != slots.end();
}

bool Opcode::has(std::string_view word) const { return has(mod(word)); }

Type Opcode::type(int i) const {
  for (const Mod slot : slots) {
    const Type type = type_of(slot);
    if (type != Type::none && i-- == 0) return type;
  }
  return Type::none;
}

std::string to_string(const Opcode& opcode) {
  std::string out(opcode.row().opcode);
  for (const Mod slot : opcode.slots)
    if (slot.id != 0) out.append(".").append(name(slot));
  return out;
}

Opcode parse_opcode(std::string_view text, SourceLoc at) {
  const FormIndex& index = FormIndex::get();
  const std::size_t dot = text.find('.');
  const std::string_view word = text.substr(0, dot);
  const std::string_view rest = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  if (index.rows_of(word).empty())
    throw Error(ErrorKind::user, index.unknown_opcode(word.substr(0, 64)), at);
  const auto words = detail::split_modifiers(rest);
  if (!words || (rest.empty() && dot != std::string_view::npos))
    throw Error(ErrorKind::user,
                "'" + std::string(text.substr(0, 200)) + "' has an empty modifier or too many", at);
  std::array<Mod, kMaxSlots> mods{};
  bool known = true;
  for (std::size_t i = 0; i < words->size(); ++i) {
    mods[i] = index.find((*words)[i]);
    known = known && mods[i].id != 0;
  }
  if (known)
    if (const auto found = index.match(word, std::span<const Mod>(mods).first(words->size())))
      return *found;
  throw Error(ErrorKind::user, index.no_such_form(word, rest), at);
}

namespace {

using Memory = std::unordered_map<std::string, Opcode>;

/// Texts seen, for the whole process. Nodes never move, so the references stay good.
const Memory::value_type& remembered(std::string_view text) {
  static std::shared_mutex mutex;
  static Memory seen;
  {
    const std::shared_lock lock(mutex);
    const auto it = seen.find(std::string(text));
    if (it != seen.end()) return *it;
  }
  const Opcode parsed = parse_opcode(text, {});
  const std::unique_lock lock(mutex);
  return *seen.try_emplace(std::string(text), parsed).first;
}

struct CacheLine {
  std::string_view text;  ///< the memo's own copy
  const Opcode* opcode = nullptr;
};

std::size_t hash(std::string_view text) {
  std::uint64_t h = text.size();
  for (const char c : text)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return static_cast<std::size_t>(h ^ (h >> 29));
}

}  // namespace

const Opcode& opcode(std::string_view text) {
  constexpr std::size_t kLines = 1024;
  thread_local std::array<CacheLine, kLines> cache;
  CacheLine& line = cache[hash(text) % kLines];
  if (line.opcode != nullptr && line.text == text) return *line.opcode;
  const Memory::value_type& entry = remembered(text);
  line = {entry.first, &entry.second};
  return entry.second;
}

}  // namespace tilewright::ptx

// SPDX-License-Identifier: Apache-2.0
// Compiles the table's patterns and matches modifier words against them.
#include "ptx/form_index.h"

#include "ptx/forms.h"

#include <algorithm>

namespace tilewright::ptx::detail {
namespace {

std::string_view set_words(std::string_view name) {
  for (const WordSet& set : word_sets())
    if (set.name == name) return set.words;
  TW_ASSERT(false, "a pattern names a word set that forms_words.cpp has");
  return {};
}

bool contains(std::span<const Mod> words, Mod word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// `previous`: the word of the slot before.
bool match_slots(std::span<const Slot> slots, std::span<const Mod> mods, Mod* out,
                 Mod previous = {}) {
  if (slots.empty()) return mods.empty();
  const Slot& slot = slots.front();
  if (slot.with_previous && previous.id == 0) {
    *out = Mod{};
    return match_slots(slots.subspan(1), mods, out + 1);
  }
  if (!mods.empty() && contains(slot.words, mods.front())) {
    *out = mods.front();
    if (match_slots(slots.subspan(1), mods.subspan(1), out + 1, mods.front())) return true;
  }
  *out = Mod{};
  return slot.optional && match_slots(slots.subspan(1), mods, out + 1);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

FormIndex::FormIndex() : words_{""}, types_{Type::none} {
  for (const auto& part : {arith_forms(), logic_forms(), convert_forms(), memory_forms(),
                           control_forms(), async_forms(), matrix_forms(), blackwell_forms()})
    rows_.insert(rows_.end(), part.begin(), part.end());
  slots_.reserve(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    slots_.push_back(compile(rows_[i].modifiers));
    TW_ASSERT(slots_.back().size() <= kMaxSlots, "kMaxSlots bounds every pattern");
    by_opcode_[rows_[i].opcode].push_back(static_cast<std::uint16_t>(i));
  }
  for (const Conflict& c : conflicts())
    conflicts_.push_back({c.opcode, intern_list(c.left), intern_list(c.right)});
  index_requirements();
}

void FormIndex::index_requirements() {
  word_requires_.resize(words_.size());
  for (const WordRequires& w : word_requirements()) {
    const Mod word = find(w.word);
    TW_ASSERT(word.id != 0, "a requirement is about a word of some row");
    word_requires_[word.id].push_back(&w);
  }
  operand_requires_.resize(rows_.size());
  for (const OperandRequires& o : detail::operand_requirements())
    for (const std::uint16_t row : rows_of(o.opcode))
      if (row_has(row, find(o.word))) operand_requires_[row].push_back(&o);
}

const FormIndex& FormIndex::get() {
  static const FormIndex index;
  return index;
}

Mod FormIndex::intern(std::string_view word) {
  const auto [it, added] = ids_.try_emplace(word, static_cast<std::uint16_t>(words_.size()));
  if (added) {
    words_.push_back(word);
    types_.push_back(type_from_name(word).value_or(Type::none));
  }
  return Mod{it->second};
}

/// "rn", "rn,rz" or "<rnd>".
std::vector<Mod> FormIndex::intern_list(std::string_view list) {
  if (list.front() == '<') list = set_words(list.substr(1, list.size() - 2));
  std::vector<Mod> out;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    out.push_back(intern(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return out;
}

std::vector<Slot> FormIndex::compile(std::string_view pattern) {
  std::vector<Slot> slots;
  while (!pattern.empty()) {
    const std::size_t space = std::min(pattern.find(' '), pattern.size());
    std::string_view item = pattern.substr(0, space);
    pattern.remove_prefix(std::min(space + 1, pattern.size()));
    TW_ASSERT(item.size() > 1 && item.front() == '.', "a pattern is words that begin with a dot");
    item.remove_prefix(1);
    Slot& slot = slots.emplace_back();
    slot.optional = item.ends_with('?');
    slot.with_previous = item.ends_with('+');
    if (slot.optional || slot.with_previous) item.remove_suffix(1);
    if (item.front() == '{') item = item.substr(1, item.size() - 2);
    slot.words = intern_list(item);
  }
  return slots;
}

bool FormIndex::row_has(std::uint16_t row, Mod mod) const {
  return std::any_of(slots_[row].begin(), slots_[row].end(),
                     [&](const Slot& slot) { return contains(slot.words, mod); });
}

std::span<const std::uint16_t> FormIndex::rows_of(std::string_view opcode) const {
  const auto it = by_opcode_.find(opcode);
  return it == by_opcode_.end() ? std::span<const std::uint16_t>{} : it->second;
}

Mod FormIndex::find(std::string_view word) const {
  const auto it = ids_.find(word);
  return it == ids_.end() ? Mod{} : Mod{it->second};
}

std::optional<Opcode> FormIndex::match(std::string_view opcode, std::span<const Mod> mods,
                                       std::size_t first) const {
  const std::span<const std::uint16_t> candidates = rows_of(opcode);
  if (conflicting(opcode, mods)) return std::nullopt;
  for (std::size_t i = first; i < candidates.size(); ++i) {
    Opcode out;
    out.form = candidates[i];
    if (match_slots(slots_[out.form], mods, out.slots.data())) return out;
  }
  // ptxas takes modifiers in any order, and libcu++ makes use of it: atom.add.acquire.cta.u32.
  for (std::size_t i = first; i < candidates.size(); ++i) {
    Opcode out;
    out.form = candidates[i];
    if (match_unordered(slots_[out.form], mods, out.slots.data())) return out;
  }
  return std::nullopt;
}

/// As match_slots, whatever the words' order: each slot takes the first word left that it has. Only
/// types keep their order, which says what is converted to what.
bool FormIndex::match_unordered(std::span<const Slot> slots, std::span<const Mod> mods,
                                Mod* out) const {
  std::uint32_t used = 0;
  bool previous_absent = true;
  for (const Slot& slot : slots) {
    *out = Mod{};
    bool type_passed = false;
    for (std::size_t i = 0; i < mods.size() && out->id == 0; ++i) {
      if ((used >> i & 1) != 0) continue;
      const bool is_type = type(mods[i]) != Type::none;
      if (contains(slot.words, mods[i]) && !(is_type && type_passed)) {
        *out = mods[i];
        used |= std::uint32_t{1} << i;
      }
      type_passed = type_passed || is_type;
    }
    const bool is_absent = out->id == 0;
    if (slot.with_previous ? is_absent != previous_absent : is_absent && !slot.optional)
      return false;
    previous_absent = is_absent;
    ++out;
  }
  return used == (std::uint32_t{1} << mods.size()) - 1;
}

bool FormIndex::conflicting(std::string_view opcode, std::span<const Mod> mods) const {
  const auto any = [&](const std::vector<Mod>& words) {
    return std::find_first_of(mods.begin(), mods.end(), words.begin(), words.end()) != mods.end();
  };
  return std::any_of(conflicts_.begin(), conflicts_.end(), [&](const WordConflict& c) {
    return c.opcode == opcode && any(c.left) && any(c.right);
  });
}

std::string FormIndex::unknown_opcode(std::string_view opcode) const {
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (const auto& [name, unused] : by_opcode_)
    near.emplace_back(edit_distance(opcode, name), name);
  std::sort(near.begin(), near.end());
  const std::size_t limit = opcode.size() < 4 ? 1 : 2;
  std::string out = "unknown instruction '" + std::string(opcode) + "'";
  if (near.front().first > limit) return out;
  out += "; did you mean ";
  for (std::size_t i = 0; i < 3 && i < near.size() && near[i].first <= limit; ++i)
    out += (i == 0 ? "'" : ", '") + std::string(near[i].second) + "'";
  return out;
}

std::string FormIndex::no_such_form(std::string_view opcode, std::string_view modifiers) const {
  std::vector<std::string_view> words =
      split_modifiers(modifiers).value_or(std::vector<std::string_view>{});
  const std::span<const std::uint16_t> rows = rows_of(opcode);
  for (std::string_view word : words) {
    const Mod mod = find(word);
    if (mod.id == 0 ||
        std::none_of(rows.begin(), rows.end(), [&](auto r) { return row_has(r, mod); }))
      return "no form of '" + std::string(opcode) + "' has the modifier '." + std::string(word) +
             "'";
  }
  for (const WordConflict& c : conflicts_)
    for (const std::string_view left : words)
      for (const std::string_view right : words)
        if (c.opcode == opcode && contains(c.left, find(left)) && contains(c.right, find(right)))
          return "'." + std::string(left) + "' and '." + std::string(right) +
                 "' do not go together in '" + std::string(opcode) + "'";
  std::vector<std::pair<std::size_t, std::uint16_t>> best;  // words missing, row
  for (const std::uint16_t row : rows)
    best.emplace_back(
        std::count_if(words.begin(), words.end(), [&](auto w) { return !row_has(row, find(w)); }),
        row);
  std::stable_sort(best.begin(), best.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out = words.empty()
                        ? "'" + std::string(opcode) + "' needs modifiers; nearest:"
                        : "no form of '" + std::string(opcode) + "' has the modifiers '." +
                              std::string(modifiers) + "' in this combination; nearest:";
  for (std::size_t i = 0; i < best.size() && i < 2; ++i) {
    const Form& form = rows_[best[i].second];
    const std::size_t begin = out.size() + (i == 0 ? 1U : 2U);
    out += (i == 0 ? " " : ", ") + std::string(form.opcode) + std::string(form.modifiers);
    out.erase(std::remove(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), ' '),
              out.end());
  }
  return out;
}

std::optional<std::vector<std::string_view>> split_modifiers(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t dot = text.find('.');
    words.push_back(text.substr(0, dot));
    if (words.back().empty() || words.size() > kMaxSlots) return std::nullopt;
    if (dot == std::string_view::npos) return words;
    text.remove_prefix(dot + 1);
    if (text.empty()) return std::nullopt;
  }
  return words;
}

}  // namespace tilewright::ptx::detail

// SPDX-License-Identifier: Apache-2.0
// Schedules as text, and delta debugging over their turns.
#include "tilewright/replay.h"

#include "tilewright/error.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tilewright::emu {

namespace {

std::string turn_text(const Turn& t) {
  std::string out = "idle";
  if (!t.idle) {
    out = t.grid == 0 ? "" : "g" + std::to_string(t.grid);
    out += "b" + std::to_string(t.block) + "w" + std::to_string(t.warp);
    if (t.steps != 0) out += "x" + std::to_string(t.steps);
  }
  for (std::size_t i = 0; i < t.choices.size(); ++i) {
    out += (i == 0 ? ":" : ".") + std::to_string(t.choices[i]);
  }
  return out;
}

/// Reads "12" behind `letter`, if that comes next.
template <class Number>
bool take(std::string_view& text, char letter, Number& value) {
  if (text.empty() || text[0] != letter) return false;
  const auto [end, code] = std::from_chars(text.data() + 1, text.data() + text.size(), value);
  if (code != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

Turn parse_turn(std::string_view whole) {
  Turn t;
  std::string_view text = whole;
  bool good = true;
  if (text.starts_with("idle")) {
    t.idle = true;
    text.remove_prefix(4);
  } else {
    take(text, 'g', t.grid);
    good = take(text, 'b', t.block) && take(text, 'w', t.warp);
    take(text, 'x', t.steps);
  }
  std::uint32_t choice = 0;
  while (good && take(text, t.choices.empty() ? ':' : '.', choice))
    t.choices.push_back(choice);
  if (good && text.empty()) return t;
  throw Error(ErrorKind::user, "schedule: cannot read the turn '" + std::string(whole) +
                                   "'; write turns such as b0w1x12, b0w1:0.1 or idle:2");
}

/// One search: what is left, and how many trials are.
class Shortening {
 public:
  Shortening(ScheduleTest shows, int trials) : shows_(shows), trials_(trials) {}

  bool accepts(const Schedule& candidate) {
    return trials_ > 0 && --trials_ >= 0 && shows_(candidate);
  }
  bool exhausted() const { return trials_ <= 0; }

 private:
  ScheduleTest shows_;
  int trials_;
};

/// The shortest front part that suffices, by bisection.
void cut_end(Schedule& s, Shortening& search) {
  std::size_t fails = 0, works = s.turns.size();
  while (works - fails > 1 && !search.exhausted()) {
    const std::size_t middle = fails + (works - fails) / 2;
    Schedule part;
    part.turns.assign(s.turns.begin(), s.turns.begin() + static_cast<std::ptrdiff_t>(middle));
    (search.accepts(part) ? works : fails) = middle;
  }
  s.turns.resize(works);
}

/// Leaves out ever smaller pieces.
void drop_pieces(Schedule& s, Shortening& search) {
  for (std::size_t size = std::max<std::size_t>(s.turns.size() / 2, 1); !search.exhausted();) {
    bool any = false;
    for (std::size_t at = 0; at < s.turns.size() && !search.exhausted();) {
      Schedule rest = s;
      const std::size_t end = std::min(at + size, s.turns.size());
      rest.turns.erase(rest.turns.begin() + static_cast<std::ptrdiff_t>(at),
                       rest.turns.begin() + static_cast<std::ptrdiff_t>(end));
      if (search.accepts(rest)) {
        s = std::move(rest);
        any = true;
      } else {
        at += size;
      }
    }
    if (size == 1 && !any) return;
    size = std::max<std::size_t>(size / 2, 1);
  }
}

/// Two turns of one warp in a row are one.
void join_turns(Schedule& s, Shortening& search) {
  for (std::size_t i = 0; i + 1 < s.turns.size();) {
    const Turn &a = s.turns[i], &b = s.turns[i + 1];
    const bool same = !a.idle && !b.idle && a.grid == b.grid && a.block == b.block &&
                      a.warp == b.warp && a.steps != 0;
    Schedule joined = s;
    Turn& t = joined.turns[i];
    t.steps = b.steps == 0 ? 0 : a.steps + b.steps;
    t.choices.insert(t.choices.end(), b.choices.begin(), b.choices.end());
    joined.turns.erase(joined.turns.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (same && search.accepts(joined)) {
      s = std::move(joined);
    } else {
      ++i;
    }
  }
}

void drop_choices(Schedule& s, Shortening& search) {
  for (Turn& t : s.turns) {
    if (t.choices.empty()) continue;
    const std::vector<std::uint32_t> kept = std::exchange(t.choices, {});
    if (!search.accepts(s)) t.choices = kept;
  }
}

}  // namespace

std::string to_string(const Schedule& schedule) {
  if (schedule.turns.empty()) return "plain";
  std::string out;
  for (const Turn& t : schedule.turns)
    out += (out.empty() ? "" : ",") + turn_text(t);
  return out;
}

Schedule parse_schedule(std::string_view text) {
  Schedule out;
  if (text == "plain") return out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    out.turns.push_back(parse_turn(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

Schedule shorten(const Schedule& schedule, ScheduleTest shows, int trials) {
  Shortening search(shows, trials);
  if (search.accepts({})) return {};
  Schedule best = schedule;
  cut_end(best, search);
  drop_pieces(best, search);
  join_turns(best, search);
  drop_choices(best, search);
  return best;
}

}  // namespace tilewright::emu

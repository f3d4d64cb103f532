// SPDX-License-Identifier: Apache-2.0
// Reading and writing the files of winners.
#include "tilewright/tune_record.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <tuple>

namespace tilewright::tune {
namespace {

constexpr std::string_view kFirstLine = "tilewright tuned 1";
constexpr std::string_view kMicroseconds = " us";
constexpr std::string_view kStandard = ", standard ";

/// One line, with what its messages begin with.
struct Line {
  std::string_view text;
  std::string place;  ///< "FILE:LINE"
  SourceLoc at;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::user, place + ": " + what, at);
  }
};

/// What is before the separator; `rest` keeps what is after it.
std::string_view cut(std::string_view& rest, std::string_view separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + separator.size());
  return part;
}

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

template <typename Number>
bool read(std::string_view text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size();
}

Record::Numbers numbers(std::string_view text, const Line& line) {
  Record::Numbers found;
  while (!text.empty()) {
    const std::string_view item = cut(text, " ");
    std::string_view value = item;
    const std::string_view name = cut(value, "=");
    std::int64_t number = 0;
    if (!is_name(name) || !read(value, number)) {
      line.fail("'" + std::string(item) + "' is not NAME=INTEGER");
    }
    if (std::any_of(found.begin(), found.end(), [&](const auto& n) { return n.first == name; })) {
      line.fail("'" + std::string(name) + "' is given twice");
    }
    found.emplace_back(name, number);
  }
  if (found.size() > kMaxNumbers) {
    line.fail("has " + std::to_string(found.size()) + " numbers in one part; at most " +
              std::to_string(kMaxNumbers) + " are possible");
  }
  return found;
}

double time_of(std::string_view text, const Line& line) {
  double us = 0;
  const bool ends = text.ends_with(kMicroseconds);
  if (ends) text.remove_suffix(kMicroseconds.size());
  if (!ends || !read(text, us) || !(us >= 0 && us < 1e9)) {
    line.fail("the times are not as in '12.34 us, standard 13.00 us'");
  }
  return us;
}

Record record_of(const Line& line) {
  std::string_view rest = line.text;
  std::string_view problem = cut(rest, " : ");
  const std::string_view knobs = cut(rest, " : ");
  if (knobs.empty() || rest.empty()) {
    line.fail("'" + std::string(line.text) +
              "' is not NAME KEY=N ... : KNOB=N ... : US us, standard US us");
  }
  Record record;
  record.space = cut(problem, " ");
  if (!is_name(record.space)) line.fail("'" + record.space + "' is no name of a space");
  record.keys = numbers(problem, line);
  record.knobs = numbers(knobs, line);
  record.us = time_of(cut(rest, kStandard), line);
  record.standard_us = time_of(rest, line);
  record.from = line.place;
  return record;
}

bool same_problem(const Record& a, const Record& b) {
  return a.space == b.space && a.keys == b.keys;
}

std::string text_of(const Record::Numbers& numbers) {
  std::string text;
  for (const auto& [name, number] : numbers)
    text += " " + name + "=" + std::to_string(number);
  return text;
}

std::string text_of(const Record& record) {
  char times[64];
  std::snprintf(times, sizeof times, " : %.2f us, standard %.2f us\n", record.us,
                record.standard_us);
  return record.space + text_of(record.keys) + " :" + text_of(record.knobs) + times;
}

}  // namespace

RecordFile parse_records(std::string_view text, std::string_view file, SourceLoc at) {
  RecordFile parsed;
  std::string measured;
  int number = 0;
  bool begun = false;
  while (!text.empty()) {
    std::string_view content = cut(text, "\n");
    const Line line{content, std::string(file) + ":" + std::to_string(++number), at};
    if (content.empty() || content.front() == '#') continue;
    const std::string_view word = cut(content, " ");
    if (!begun) {
      if (line.text != kFirstLine) line.fail("is not '" + std::string(kFirstLine) + "'");
      begun = true;
    } else if (word == "device" && parsed.device.empty() && !content.empty()) {
      parsed.device = content;
    } else if (parsed.device.empty()) {
      line.fail("is not 'device NAME'");
    } else if (word == "measured") {
      measured = content;
    } else {
      Record record = record_of(line);
      record.measured = measured;
      const auto same = [&](const Record& each) { return same_problem(each, record); };
      const auto first = std::find_if(parsed.records.begin(), parsed.records.end(), same);
      if (first != parsed.records.end()) line.fail("repeats the problem of " + first->from);
      parsed.records.push_back(std::move(record));
    }
  }
  if (parsed.device.empty()) {
    const Line end{{}, std::string(file) + ":" + std::to_string(number), at};
    end.fail("ends before 'device NAME'; records begin with '" + std::string(kFirstLine) + "'");
  }
  return parsed;
}

std::string print_records(const RecordFile& file) {
  std::vector<Record> sorted = file.records;
  const auto before = [](const Record& a, const Record& b) {
    return std::tie(a.measured, a.space, a.keys) < std::tie(b.measured, b.space, b.keys);
  };
  std::sort(sorted.begin(), sorted.end(), before);
  std::string text = std::string(kFirstLine) + "\ndevice " + file.device + "\n";
  const std::string* measured = nullptr;
  for (const Record& record : sorted) {
    if (measured == nullptr || *measured != record.measured) {
      text += "measured " + record.measured + "\n";
    }
    measured = &record.measured;
    text += text_of(record);
  }
  return text;
}

void put_record(RecordFile& file, Record record) {
  std::erase_if(file.records, [&](const Record& each) { return same_problem(each, record); });
  file.records.push_back(std::move(record));
}

Record make_record(const Space& space, const Key& key, const Config& config) {
  Record record;
  record.space = space.name;
  for (std::size_t i = 0; i < space.keys.size(); ++i)
    record.keys.emplace_back(space.keys[i].name, key[i]);
  for (std::size_t i = 0; i < space.knobs.size(); ++i)
    record.knobs.emplace_back(space.knobs[i].name, config[i]);
  return record;
}

std::string record_file_name(std::string_view device) {
  std::string name(device);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-') c = '_';
  }
  return name + ".tuned";
}

}  // namespace tilewright::tune

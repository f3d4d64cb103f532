// SPDX-License-Identifier: Apache-2.0
// Which record serves a problem.
#include "tilewright/tune_record.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tilewright::tune {
namespace {

/// Logarithms of what a space's nearest keys are, NaN where that is none; 0 for the others.
using Logarithms = std::array<double, kMaxNumbers>;
Logarithms logarithms_of(const Space& space, const Key& key) {
  Logarithms logarithms{};
  for (std::size_t i = 0; i < space.keys.size(); ++i) {
    if (space.keys[i].match == Match::nearest)
      logarithms[i] = std::log2(static_cast<double>(key[i]));
  }
  return logarithms;
}

/// A record in the order of its space's keys and knobs.
struct Choice {
  Key key{};
  Logarithms logarithms{};
  Config config{};
};

template <typename Specs>
std::string names_of(const Specs& specs) {
  std::string text;
  for (const auto& spec : specs)
    text += (text.empty() ? "" : ", ") + std::string(spec.name);
  return text.empty() ? "none" : text;
}

/// The record's numbers by the names of `specs`, each exactly once.
template <typename Values, typename Specs>
Values in_order(const Record& record, const Record::Numbers& numbers, const Specs& specs,
                const char* what) {
  Values values{};
  std::size_t known = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const auto& [name, number] : numbers) {
      if (name != specs[i].name) continue;
      values[i] = static_cast<typename Values::value_type>(number);
      if (values[i] == number) ++known;
    }
  }
  if (known == specs.size() && numbers.size() == specs.size()) return values;
  throw Error(ErrorKind::user, record.from + ": the " + what + " of " + record.space +
                                   " are not those of this version (" + names_of(specs) +
                                   "); tune again or remove the line");
}

std::vector<Choice> choices_of(const std::vector<Record>& records, const Space& space) {
  std::vector<Choice> choices;
  for (const Record& record : records) {
    if (record.space != space.name) continue;
    const Key key = in_order<Key>(record, record.keys, space.keys, "keys");
    choices.push_back({key, logarithms_of(space, key),
                       in_order<Config>(record, record.knobs, space.knobs, "knobs")});
  }
  return choices;
}

/// What a record has measured says little of problems that are further away than this in all:
/// silu_and_mul to mxfp4 of 8192 rows of 24576 took 121 us by a record of 1024 rows of 4096, and
/// 105 us by none.
constexpr double kNear = 3.0 + 1e-12;  // powers of two, and what logarithms are rounded by

/// Infinity where an exact key differs or another one is far; infinity or NaN between 0 and another
/// number.
double distance(const Space& space, const Key& asked, const Logarithms& logarithms,
                const Choice& choice) {
  double sum = 0;
  for (std::size_t i = 0; i < space.keys.size(); ++i) {
    if (asked[i] == choice.key[i]) continue;
    if (space.keys[i].match == Match::exact) return std::numeric_limits<double>::infinity();
    sum += std::fabs(logarithms[i] - choice.logarithms[i]);
  }
  return sum > kNear ? std::numeric_limits<double>::infinity() : sum;
}

}  // namespace

struct Library::State {
  std::map<std::string, RecordFile, std::less<>> files;  // by device
  std::string directory;
  std::shared_mutex mutex;
  std::unordered_map<const Space*, std::map<std::string, std::vector<Choice>, std::less<>>> read;

  /// The records of a device: the directory's instead of shipped ones for the same problem.
  RecordFile records(const std::string& device) const {
    RecordFile all;
    if (const auto found = files.find(device); found != files.end()) all = found->second;
    if (directory.empty()) return all;
    const std::string path = directory + "/" + record_file_name(device);
    std::ifstream stream(path, std::ios::binary);
    if (!stream) return all;
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    RecordFile own = parse_records(text, path);
    if (own.device != device) {
      throw Error(ErrorKind::user, path + ": is of the device '" + own.device + "', not '" +
                                       device + "'; name it " + record_file_name(own.device));
    }
    for (Record& record : own.records)
      put_record(all, std::move(record));
    return all;
  }

  const std::vector<Choice>& choices(const Space& space, const std::string& device) {
    {
      const std::shared_lock lock(mutex);
      if (const auto of_space = read.find(&space); of_space != read.end()) {
        const auto found = of_space->second.find(device);
        if (found != of_space->second.end()) return found->second;  // is never changed again
      }
    }
    std::vector<Choice> made = choices_of(records(device).records, space);
    const std::unique_lock lock(mutex);
    return read[&space].try_emplace(device, std::move(made)).first->second;
  }
};

Library::Library(std::span<const ShippedFile> shipped, std::string directory) : state_(new State) {
  state_->directory = std::move(directory);
  for (const ShippedFile& file : shipped) {
    RecordFile parsed = parse_records(file.text, file.name);
    state_->files.emplace(parsed.device, std::move(parsed));
  }
}
Library::~Library() { delete state_; }

const Library& Library::global() {
  const char* directory = std::getenv("TILEWRIGHT_TUNED");
  static const Library library(shipped_records(), directory == nullptr ? "" : directory);
  return library;
}

std::optional<Config> Library::find(const Space& space, const DeviceProperties& device,
                                    const Key& key) const {
  const Choice* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  const std::vector<Choice>& choices = state_->choices(space, device.name);
  if (choices.empty()) return std::nullopt;
  const Logarithms logarithms = logarithms_of(space, key);
  for (const Choice& choice : choices) {
    const double d = distance(space, key, logarithms, choice);
    const bool smaller = nearest != nullptr && d == least && choice.key < nearest->key;
    if (!(d < least || smaller) || !space.valid(device, key, choice.config)) continue;
    nearest = &choice;
    least = d;
  }
  if (nearest == nullptr) return std::nullopt;
  return nearest->config;
}

}  // namespace tilewright::tune

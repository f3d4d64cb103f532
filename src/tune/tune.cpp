// SPDX-License-Identifier: Apache-2.0
// The choice of a plan: pinned, recorded or standard.
#include "tilewright/tune.h"

#include "tilewright/tune_record.h"

#include <algorithm>

namespace tilewright::tune {
namespace {

thread_local Pin* innermost_pin = nullptr;
thread_local Watch* innermost_watch = nullptr;

template <typename Specs, typename Values>
std::string text_of(const Specs& specs, const Values& values) {
  std::string text;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    text += (i == 0 ? "" : " ") + std::string(specs[i].name) + "=" + std::to_string(values[i]);
  }
  return text;
}

/// Steps to the next configuration, the last knob first. False after the last one.
bool advance(const Space& space, std::array<std::size_t, kMaxNumbers>& at) {
  for (std::size_t i = space.knobs.size(); i-- > 0;) {
    if (++at[i] < space.knobs[i].values.size()) return true;
    at[i] = 0;
  }
  return false;
}

[[noreturn]] void refuse_pin(const Space& space, const Key& key, const Config& config) {
  throw Error(ErrorKind::user, "tune: " + std::string(space.name) + " cannot have " +
                                   config_text(space, config) + ", which is pinned, for " +
                                   key_text(space, key));
}

}  // namespace

Pin::Pin(const Space& space, const Config& config)
    : space_(space), config_(config), outer_(innermost_pin) {
  innermost_pin = this;
}
Pin::~Pin() { innermost_pin = outer_; }

Watch::Watch() : outer_(innermost_watch) { innermost_watch = this; }
Watch::~Watch() { innermost_watch = outer_; }

Config choose(const Space& space, const DeviceProperties& device, const Key& key) {
  if (Watch* watch = innermost_watch) {
    const auto same = [&](const Lookup& each) { return each.space == &space && each.key == key; };
    if (std::none_of(watch->lookups_.begin(), watch->lookups_.end(), same)) {
      watch->lookups_.push_back({&space, key});
    }
  }
  for (const Pin* pin = innermost_pin; pin != nullptr; pin = pin->outer_) {
    if (&pin->space_ != &space) continue;
    if (!space.valid(device, key, pin->config_)) refuse_pin(space, key, pin->config_);
    return pin->config_;
  }
  if (const std::optional<Config> found = Library::global().find(space, device, key)) {
    return *found;
  }
  return space.standard(device, key);
}

std::vector<Config> candidates(const Space& space, const DeviceProperties& device, const Key& key) {
  const Config standard = space.standard(device, key);
  std::vector<Config> all = {standard};
  std::array<std::size_t, kMaxNumbers> at{};
  do {
    Config config{};
    for (std::size_t i = 0; i < space.knobs.size(); ++i)
      config[i] = space.knobs[i].values[at[i]];
    if (config != standard && space.valid(device, key, config)) all.push_back(config);
  } while (advance(space, at));
  return all;
}

std::string key_text(const Space& space, const Key& key) { return text_of(space.keys, key); }
std::string config_text(const Space& space, const Config& config) {
  return text_of(space.knobs, config);
}

}  // namespace tilewright::tune

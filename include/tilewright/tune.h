// SPDX-License-Identifier: Apache-2.0
// Configurations that are measured, not guessed: what a plan may choose, and how it looks it up.
#pragma once

#include "tilewright/device.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::tune {

inline constexpr std::size_t kMaxNumbers = 8;
/// A problem: one value for each of a space's keys, in their order; the rest is 0.
using Key = std::array<std::int64_t, kMaxNumbers>;
/// A choice: one value for each of a space's knobs, in their order; the rest is 0.
using Config = std::array<int, kMaxNumbers>;

enum class Match : std::uint8_t {
  exact,   ///< a record serves equal values only: widths, bits of an element
  nearest  ///< the least |log2(value / recorded)|, up to 3, serves: numbers of rows
};

/// Something that the choice may depend on.
struct KeySpec {
  std::string_view name = {};
  Match match = Match::exact;
};

/// Something that a plan may choose, with the values that a search tries.
struct Knob {
  std::string_view name = {};
  std::span<const int> values = {};
};

/// A size of an operator's problem that a candidate's check may reduce to about `most`.
struct Reducible {
  std::string_view size = {};
  std::int64_t most = 0;
  std::span<const std::string_view> multiples = {};  ///< sizes that count so many for each of it
};

/// The configurations of a kernel. A constant of the kernel's folder; what it spans lives as long.
struct Space {
  std::string_view name = {};  ///< begins its records: "transpose"
  std::span<const KeySpec> keys = {};
  std::span<const Knob> knobs = {};
  /// The choice without a record: also of emulated devices and of traces without a device.
  Config (*standard)(const DeviceProperties& device, const Key& key) = nullptr;
  /// Whether a kernel can be made: what divides what, threads of a block, shared memory.
  bool (*valid)(const DeviceProperties& device, const Key& key, const Config& config) = nullptr;
  std::span<const Reducible> reducible = {};
};

/// What a plan uses, at each launch: the configuration that is pinned on this thread, else the
/// nearest valid record of this kind of device, else the standard one. Throws Error(user) that
/// names file and line if $TILEWRIGHT_TUNED has a record that this space cannot read.
Config choose(const Space& space, const DeviceProperties& device, const Key& key);

/// While it lives, choose() gives `config` for the space on this thread, and throws Error(user) for
/// keys that it is not valid for.
class Pin {
 public:
  Pin(const Space& space, const Config& config);
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin();

 private:
  friend Config choose(const Space& space, const DeviceProperties& device, const Key& key);
  const Space& space_;
  Config config_;
  Pin* outer_;
};

/// A call of choose().
struct Lookup {
  const Space* space = nullptr;
  Key key{};
};

/// While it lives, it notes this thread's calls of choose(), each space and key once.
class Watch {
 public:
  Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();
  const std::vector<Lookup>& lookups() const { return lookups_; }

 private:
  friend Config choose(const Space& space, const DeviceProperties& device, const Key& key);
  std::vector<Lookup> lookups_;
  Watch* outer_;
};

/// All valid configurations of a problem: the standard one first, then in the order of the knobs.
std::vector<Config> candidates(const Space& space, const DeviceProperties& device, const Key& key);

std::string key_text(const Space& space, const Key& key);           ///< "bits=16 h=4096"
std::string config_text(const Space& space, const Config& config);  ///< "threads=256 early=1"

}  // namespace tilewright::tune

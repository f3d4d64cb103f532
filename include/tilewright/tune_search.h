// SPDX-License-Identifier: Apache-2.0
// The search for the fastest of a kernel's configurations.
#pragma once

#include "tilewright/tune.h"

#include <span>
#include <string>
#include <vector>

namespace tilewright::tune {

/// What came of making a candidate's code.
struct Assembly {
  std::string refusal;  ///< why it is out ("spills 16 bytes"); empty: it is not
  std::string note;     ///< "40 registers"
};

struct Progress {
  std::string_view stage;  ///< "assembling", "checking", "measuring"
  int done = 0;
  int of = 0;
};

/// Makes the code of configurations.
class Maker {
 public:
  virtual ~Maker() = default;
  virtual Assembly assemble(const Config& config) = 0;  ///< called by several threads at once
  virtual void progress(const Progress&) {}             ///< by one thread at a time
};

/// What a search does with a configuration besides.
class Subject : public Maker {
 public:
  /// What check() needs, as far as no device does it; called by several threads at once.
  virtual void prepare_check(const Config&) {}
  /// Runs it on fresh inputs. What is wrong; empty: nothing.
  virtual std::string check(const Config& config) = 0;
  virtual double measure_us(const Config& config) = 0;  ///< one measurement
};

struct SearchOptions {
  double budget_s = 20;  ///< no measurement begins after it; the standard one has its rounds
  int fewest_rounds = 5;
  int most_rounds = 25;
  int threads = 0;           ///< that assemble and prepare checks; 0: as many as the host has
  double least_gain = 0.01;  ///< that a winner other than the standard one must have
};

enum class Fate : std::uint8_t {
  refused,  ///< its code needs too much
  wrong,    ///< its results are
  slower,  ///< abandoned when even the lower bound of its time was above the best one's upper bound
  measured,  ///< in all rounds
  unreached  ///< by the budget
};
std::string_view name(Fate fate);  ///< its enumerator, in text and JSON

/// A candidate and what came of it.
struct Trial {
  Config config{};
  Fate fate = Fate::unreached;
  std::string why;         ///< refused, wrong: the reason
  std::string note;        ///< of its assembly
  std::vector<double> us;  ///< one a round
  double median_us = 0;
};

struct SearchResult {
  std::vector<Trial> trials;  ///< in the order of the candidates
  std::size_t winner = 0;
  const Trial& best() const { return trials[winner]; }
  const Trial& standard() const { return trials.front(); }
  /// Whether the winner is a winner: false if the budget ended before anything else was measured.
  bool compared() const;
};

/// Assembles all candidates concurrently, drops those that are refused or wrong, and measures the
/// others in interleaved rounds, abandoning what is certainly slower. The first candidate is the
/// standard one: it wins unless another is faster by least_gain. Throws Error(user) if no candidate
/// is right.
SearchResult search(std::span<const Config> candidates, Subject& subject,
                    const SearchOptions& options = {});

/// The first step of a search alone.
std::vector<Trial> assemble_all(std::span<const Config> candidates, Maker& maker,
                                const SearchOptions& options = {});

}  // namespace tilewright::tune

// SPDX-License-Identifier: Apache-2.0
// Assemble concurrently, check, measure in rounds, abandon early.
#include "tilewright/tune_search.h"

#include "tune/timing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

namespace tilewright::tune {

std::string_view name(Fate fate) {
  switch (fate) {
    case Fate::refused:
      return "refused";
    case Fate::wrong:
      return "wrong";
    case Fate::slower:
      return "slower";
    case Fate::measured:
      return "measured";
    case Fate::unreached:
      return "unreached";
  }
  return "";
}
namespace {

class Budget {
 public:
  explicit Budget(double seconds) : end_(Clock::now() + std::chrono::duration<double>(seconds)) {}
  bool over() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::time_point<Clock, std::chrono::duration<double>> end_;
};

/// Where the median of a trial's times is, with about 95 % confidence: the spread is 1.4826 times
/// the median absolute deviation, and a median of n values has an error of 1.2533 spread / sqrt(n).
struct Bounds {
  double lower = 0, upper = 0;
};
Bounds bounds_of(const Trial& trial) {
  std::vector<double> deviations;
  for (double us : trial.us)
    deviations.push_back(std::fabs(us - trial.median_us));
  const double spread = 1.4826 * median(std::move(deviations));
  const double error = 2 * 1.2533 * spread / std::sqrt(static_cast<double>(trial.us.size()));
  return {trial.median_us - error, trial.median_us + error};
}

bool alive(const Trial& trial) { return trial.fate == Fate::measured; }

/// The fastest live trial. Pre: one is alive.
std::size_t fastest(const std::vector<Trial>& trials) {
  std::size_t best = trials.size();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const bool better = best == trials.size() || trials[i].median_us < trials[best].median_us;
    if (alive(trials[i]) && better) best = i;
  }
  TW_ASSERT(best < trials.size(), "a search has found a right candidate before it measures");
  return best;
}

/// Abandons all that are slower but the standard one, which the result is held against. How many
/// may still be the fastest.
int abandon_slower(std::vector<Trial>& trials) {
  const double upper = bounds_of(trials[fastest(trials)]).upper;
  int contenders = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (!alive(trials[i])) continue;
    const bool slower = bounds_of(trials[i]).lower > upper;
    if (slower && i > 0) trials[i].fate = Fate::slower;
    contenders += slower ? 0 : 1;
  }
  return contenders;
}

std::size_t thread_count(const SearchOptions& options) {
  const std::size_t hosts = std::max(1U, std::thread::hardware_concurrency());
  return options.threads > 0 ? static_cast<std::size_t>(options.threads) : hosts;
}

/// Calls work(i) for each i below `count`, on as many threads, and throws the first exception.
template <typename Work>
void run_concurrently(std::size_t count, std::size_t thread_count, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // of the exception
  std::exception_ptr thrown;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!thrown) thrown = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(thread_count, count); ++i)
    threads.emplace_back(run);
  run();
  for (std::thread& thread : threads)
    thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

/// In batches, so that no more than a batch's inputs and references are in memory.
void check_all(std::vector<Trial>& trials, Subject& subject, const SearchOptions& options,
               const Budget& budget) {
  const auto out = [&](const Trial& trial) {
    return trial.fate == Fate::refused || (budget.over() && &trial != &trials.front());
  };
  const std::size_t batch = thread_count(options);
  for (std::size_t first = 0; first < trials.size(); first += batch) {
    const std::size_t end = std::min(first + batch, trials.size());
    run_concurrently(end - first, batch, [&](std::size_t i) {
      if (!out(trials[first + i])) subject.prepare_check(trials[first + i].config);
    });
    for (std::size_t i = first; i < end; ++i) {
      subject.progress({"checking", static_cast<int>(i), static_cast<int>(trials.size())});
      if (out(trials[i])) continue;
      trials[i].why = subject.check(trials[i].config);
      trials[i].fate = trials[i].why.empty() ? Fate::measured : Fate::wrong;
    }
  }
  if (std::any_of(trials.begin(), trials.end(), alive)) return;
  const Trial& first = trials.front();
  throw Error(ErrorKind::user, "tune: none of " + std::to_string(trials.size()) +
                                   " candidates is right; the standard one: " + first.why);
}

void measure_rounds(std::vector<Trial>& trials, Subject& subject, const SearchOptions& options,
                    const Budget& budget) {
  for (int round = 0; round < options.most_rounds; ++round) {
    subject.progress({"measuring", round, options.most_rounds});
    if (round >= options.fewest_rounds && abandon_slower(trials) == 1) return;
    for (Trial& trial : trials) {
      if (!alive(trial)) continue;
      if (budget.over() && (&trial != &trials.front() || round >= options.fewest_rounds)) continue;
      trial.us.push_back(subject.measure_us(trial.config));
      trial.median_us = median(trial.us);
    }
    if (round == 0) {  // what the budget did not let begin
      for (Trial& trial : trials) {
        if (alive(trial) && trial.us.empty()) trial.fate = Fate::unreached;
      }
    }
    if (budget.over() && round + 1 >= options.fewest_rounds) return;
  }
}

}  // namespace

bool SearchResult::compared() const {
  const auto is = [&](Fate fate) {
    return std::any_of(trials.begin() + 1, trials.end(),
                       [&](const Trial& trial) { return trial.fate == fate; });
  };
  return is(Fate::measured) || is(Fate::slower) || !is(Fate::unreached);
}

std::vector<Trial> assemble_all(std::span<const Config> candidates, Maker& maker,
                                const SearchOptions& options) {
  std::vector<Trial> trials(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i)
    trials[i].config = candidates[i];
  const Budget budget(options.budget_s);
  std::mutex mutex;  // of the progress
  int done = 0;
  run_concurrently(trials.size(), thread_count(options), [&](std::size_t i) {
    if (i > 0 && budget.over()) return;
    Assembly assembly = maker.assemble(trials[i].config);
    if (!assembly.refusal.empty()) trials[i].fate = Fate::refused;
    trials[i].why = std::move(assembly.refusal);
    trials[i].note = std::move(assembly.note);
    const std::lock_guard lock(mutex);
    maker.progress({"assembling", ++done, static_cast<int>(trials.size())});
  });
  return trials;
}

SearchResult search(std::span<const Config> candidates, Subject& subject,
                    const SearchOptions& options) {
  TW_ASSERT(!candidates.empty(), "a space has its standard configuration");
  const Budget budget(options.budget_s);
  SearchResult result{assemble_all(candidates, subject, options), 0};
  check_all(result.trials, subject, options, budget);
  measure_rounds(result.trials, subject, options, budget);
  const std::size_t best = fastest(result.trials);
  const Trial& standard = result.standard();
  const bool gains = !alive(standard) ||
                     result.trials[best].median_us < standard.median_us * (1 - options.least_gain);
  result.winner = gains ? best : 0;
  return result;
}

}  // namespace tilewright::tune

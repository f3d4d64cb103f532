// SPDX-License-Identifier: Apache-2.0
// The search on made-up costs: what it finds, prunes, abandons, refuses, and when it stops.
#include "tilewright/tune_search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace tilewright::tune {
namespace {

/// Costs by the first number of a configuration, with noise that repeats.
class FakeSubject : public Subject {
 public:
  Assembly assemble(const Config& config) override {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    return {refused.contains(config[0]) ? "spills 16 bytes" : "", "40 registers"};
  }
  std::string check(const Config& config) override {
    ++checks[config[0]];
    return wrong.contains(config[0]) ? "y is 1 and should be 2" : "";
  }
  double measure_us(const Config& config) override {
    ++measurements[config[0]];
    std::this_thread::sleep_for(pause);
    noise = noise * 6364136223846793005U + 1442695040888963407U;
    const double around = static_cast<double>(noise >> 40) / 16777216.0 - 0.5;
    return cost(config[0]) * (1 + 0.02 * around);
  }
  /// The least is at 7.
  virtual double cost(int x) const { return 10 + std::abs(x - 7); }
  void progress(const Progress& progress) override { stages.emplace_back(progress.stage); }

  std::set<int> refused, wrong;
  std::map<int, int> checks, measurements;
  std::set<std::thread::id> threads;
  std::vector<std::string> stages;
  std::chrono::milliseconds pause{0};

 private:
  std::uint64_t noise = 1;
  std::mutex mutex;
};

std::vector<Config> configs(int count) {
  std::vector<Config> all;
  for (int i = 0; i < count; ++i)
    all.push_back({i});
  return all;
}

TEST(Search, FindsTheFastestCandidate) {
  FakeSubject subject;
  const SearchResult result = search(configs(20), subject);
  EXPECT_EQ(result.best().config[0], 7);
  EXPECT_NEAR(result.best().median_us, 10, 0.1);
  EXPECT_EQ(result.best().fate, Fate::measured);
}

TEST(Search, AbandonsWhatIsCertainlySlower) {
  FakeSubject subject;
  const SearchOptions options{.fewest_rounds = 5, .most_rounds = 25};
  const SearchResult result = search(configs(20), subject, options);
  EXPECT_EQ(result.trials[19].fate, Fate::slower);
  EXPECT_EQ(subject.measurements[19], 5);  // of 25: the bounds part after the fewest rounds
  EXPECT_EQ(subject.measurements[7], 5);   // then it is the only one that may be the fastest
}

TEST(Search, MeasuresCandidatesThatAreAsFastInAllRounds) {
  class Flat : public FakeSubject {
    double cost(int) const override { return 10; }
  } subject;
  const SearchOptions options{.fewest_rounds = 5, .most_rounds = 9};
  const SearchResult result = search(configs(3), subject, options);
  EXPECT_EQ(subject.measurements[0], 9);
  EXPECT_EQ(result.winner, 0U);  // the standard one, for no other is faster by a hundredth
}

TEST(Search, PrunesWhatTheAssemblerRefuses) {
  FakeSubject subject;
  subject.refused = {7, 8};
  const SearchResult result = search(configs(20), subject);
  EXPECT_EQ(result.best().config[0], 6);
  EXPECT_EQ(result.trials[7].fate, Fate::refused);
  EXPECT_EQ(result.trials[7].why, "spills 16 bytes");
  EXPECT_EQ(subject.checks.count(7), 0U);
  EXPECT_EQ(subject.measurements.count(7), 0U);
}

TEST(Search, RejectsAPlantedWrongCandidate) {
  FakeSubject subject;
  subject.wrong = {7};
  const SearchResult result = search(configs(20), subject);
  EXPECT_NE(result.best().config[0], 7);
  EXPECT_EQ(result.trials[7].fate, Fate::wrong);
  EXPECT_EQ(result.trials[7].why, "y is 1 and should be 2");
  EXPECT_EQ(subject.measurements.count(7), 0U);
}

TEST(Search, RefusesWhenNoCandidateIsRight) {
  FakeSubject subject;
  subject.wrong = {0, 1};
  try {
    (void)search(configs(2), subject);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "tune: none of 2 candidates is right; the standard one: y is 1 and should be 2");
  }
}

TEST(Search, AssemblesOnAllThreads) {
  class Meeting : public FakeSubject {
   public:
    Assembly assemble(const Config& config) override {
      Assembly made = FakeSubject::assemble(config);
      ++here;
      while (here < 3)  // ends only if three threads are in it at once
        std::this_thread::yield();
      return made;
    }
    std::atomic<int> here{0};
  } subject;
  const std::vector<Trial> trials = assemble_all(configs(3), subject, {.threads = 3});
  EXPECT_EQ(subject.threads.size(), 3U);
  EXPECT_EQ(trials[2].note, "40 registers");
}

TEST(Search, PreparesChecksOnAllThreads) {
  class Meeting : public FakeSubject {
   public:
    void prepare_check(const Config& config) override {
      {
        const std::lock_guard lock(prepared_mutex);
        prepared.insert(config[0]);
      }
      ++here;
      while (here < 3)  // ends only if three threads are in it at once
        std::this_thread::yield();
    }
    std::string check(const Config& config) override {
      EXPECT_TRUE(prepared.contains(config[0])) << config[0];
      return FakeSubject::check(config);
    }
    std::mutex prepared_mutex;
    std::set<int> prepared;
    std::atomic<int> here{0};
  } subject;
  subject.refused = {4};
  (void)search(configs(8), subject, {.threads = 3});
  EXPECT_EQ(subject.prepared, (std::set{0, 1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(subject.checks.size(), 7U);
}

TEST(Search, PassesOnWhatAssemblingThrows) {
  class Failing : public FakeSubject {
    Assembly assemble(const Config&) override { throw Error(ErrorKind::user, "no assembler"); }
  } subject;
  EXPECT_THROW((void)search(configs(4), subject), Error);
}

TEST(Search, EndsWithItsBudgetButMeasuresTheStandardOne) {
  FakeSubject subject;
  subject.pause = std::chrono::milliseconds(2);
  const SearchOptions options{.budget_s = 0.02, .fewest_rounds = 4, .most_rounds = 1000};
  const SearchResult result = search(configs(200), subject, options);
  EXPECT_GE(subject.measurements[0], 4);
  EXPECT_LT(subject.measurements[0], 1000);
  EXPECT_EQ(result.trials[199].fate, Fate::unreached);
}

TEST(Search, TellsHowFarItIs) {
  FakeSubject subject;
  (void)search(configs(2), subject);
  for (const char* stage : {"assembling", "checking", "measuring"})
    EXPECT_NE(std::find(subject.stages.begin(), subject.stages.end(), stage), subject.stages.end());
}

}  // namespace
}  // namespace tilewright::tune

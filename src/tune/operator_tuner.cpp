// SPDX-License-Identifier: Apache-2.0
// From an operator and its problems to searches, each with the winners before it pinned.
#include "tune/operator_tuner.h"

#include "tilewright/cache.h"
#include "tilewright/module.h"
#include "tilewright/trace.h"
#include "tilewright/written.h"
#include "tune/timing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace tilewright::tune {
namespace {

constexpr double kReplayUs = 400;

using Winners = std::vector<std::pair<const Space*, Config>>;

/// Pins, released innermost first.
class Pins {
 public:
  explicit Pins(const Winners& winners) {
    for (const auto& [space, config] : winners)
      pins_.emplace_back(*space, config);
  }
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;
  ~Pins() {
    while (!pins_.empty())
      pins_.pop_back();
  }
  void add(const Space& space, const Config& config) { pins_.emplace_back(space, config); }

 private:
  std::list<Pin> pins_;
};

/// A problem, and what has been found for it so far.
struct Case {
  std::string text;
  Inputs inputs;
  Winners winners;
};

/// The cases that get one configuration in a search.
struct Group {
  const Space* space = nullptr;
  Key key{};
  std::vector<Case*> cases;
};

/// Registers of a multiprocessor, and of its allocation to a warp: sm_70 to sm_120.
constexpr int kRegisters = 65536;
constexpr int kRegisterUnit = 8;

std::string refusal(const EntryResources& r, int threads) {
  if (r.spill_store_bytes + r.spill_load_bytes > 0) {
    return "spills " + std::to_string(r.spill_store_bytes + r.spill_load_bytes) + " bytes";
  }
  const int rounded = (r.registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  if (rounded * threads > kRegisters) {
    return std::to_string(r.registers) + " registers for " + std::to_string(threads) +
           " threads; a multiprocessor has " + std::to_string(kRegisters);
  }
  return "";
}

Assembly assemble_kernels(std::vector<Traced> kernels, ptx::Target target) {
  Assembly assembly;
  for (Traced& traced : kernels) {
    const int threads = traced.block[0] * traced.block[1] * traced.block[2];
    KernelSource source{ptx::print(traced.module(), ptx::LineInfo::off), traced.entry, {}};
    // The text itself is the key: what a launch makes later is found by its PTX.
    const Assembled made = KernelCache::global().assemble(target, "tune\n" + source.ptx,
                                                          [&](ptx::LineInfo) { return source; });
    for (const EntryResources& r : made.resources) {
      assembly.note += (assembly.note.empty() ? "" : ", ") + std::to_string(r.registers) +
                       " registers, " + std::to_string(r.static_smem_bytes) + " bytes shared";
      if (assembly.refusal.empty()) assembly.refusal = refusal(r, std::max(threads, 1));
    }
  }
  return assembly;
}

/// What a candidate is checked on.
struct CheckCase {
  Inputs inputs;
  HostTensors right;  ///< with the reference's outputs
};

CheckCase make_check_case(Inputs inputs, const std::vector<std::string>& wanted) {
  CheckCase made{std::move(inputs), {}};
  for (const Array& array : made.inputs.arrays)
    made.right.set(array);
  made.inputs.op->reference(unplaced_arguments(made.inputs, wanted), made.right);
  return made;
}

/// The first wrong output, in words.
std::string first_wrong(const Operator& op, const Arguments& arguments,
                        const std::vector<Array>& outputs, const HostTensors& right) {
  for (const Array& out : outputs) {
    if (right.find(out.name) == nullptr) continue;
    const Comparison c = compare_with_reference(op, arguments, out, right);
    if (c.wrong == 0) continue;
    return out.name + " is " + std::to_string(c.out) + " at element " +
           std::to_string(c.first_wrong) + " and should be " + std::to_string(c.reference) + "; " +
           std::to_string(c.wrong) + " of " + std::to_string(c.compared) + " elements are wrong";
  }
  return "";
}

/// The first wrong output that a reference beside the outputs calls wrong as well.
std::string compare_outputs(const CheckCase& check, const Session& session) {
  const Operator& op = *check.inputs.op;
  const std::vector<Array> outputs = session.outputs();
  if (first_wrong(op, session.arguments(), outputs, check.right).empty()) return "";
  HostTensors right;
  for (const Array& array : check.inputs.arrays)
    right.set(array);
  reference_of_written(op, session.arguments(), outputs, right);
  return first_wrong(op, session.arguments(), outputs, right);
}

/// The searches of one operator.
class Tuner {
 public:
  Tuner(ptx::Target target, const TuneRequest& request)
      : request_(request), target_(target), begin_(Clock::now()) {
    if (request.op->trace == nullptr || request.op->reference == nullptr) {
      throw Error(ErrorKind::user, std::string(request.op->schema.name) +
                                       ": has no trace or no reference; a search needs both");
    }
    for (const std::string& text : request.problems)
      cases_.push_back({text, make_problem_inputs(*request.op, text, request.seed), {}});
  }

  /// `one` searches a group; what it finds is pinned from then on.
  template <typename Search>
  std::vector<Tuned> run(Search&& one) {
    std::vector<Tuned> all;
    for (std::vector<Group> groups = next_groups(); !groups.empty(); groups = next_groups()) {
      for (std::size_t i = 0; i < groups.size(); ++i) {
        Group& group = groups[i];
        request_.begin(*group.space, group.key);
        Tuned tuned{group.space, group.key, {}, one(group, budget_of(groups.size() - i))};
        for (Case* each : group.cases) {
          tuned.problems.push_back(each->text);
          each->winners.emplace_back(group.space, tuned.result.best().config);
        }
        all.push_back(std::move(tuned));
      }
    }
    if (!all.empty()) return all;
    throw Error(ErrorKind::user, std::string(request_.op->schema.name) +
                                     ": looks up no configuration; there is nothing to tune");
  }

  Assembly assemble(const Group& group, const Config& config) const {
    Assembly assembly;
    for (const Case* each : group.cases) {
      Pins pins(each->winners);
      pins.add(*group.space, config);
      Assembly one = assemble_kernels(
          request_.op->trace(unplaced_arguments(each->inputs, request_.wanted), target_), target_);
      if (assembly.refusal.empty()) assembly = std::move(one);
    }
    return assembly;
  }

  void progress(const Progress& progress) const { request_.progress(progress); }
  const std::vector<std::string>& wanted() const { return request_.wanted; }
  /// Fresh ones at each call.
  Inputs check_inputs(const Case& one, const Space& space) {
    return tune::check_inputs({one.inputs.op, one.text, request_.wanted}, space, target_,
                              request_.seed + ++checks_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Of each case the first space that it has no winner for; all of one space at a time.
  std::vector<Group> next_groups() {
    std::vector<Group> groups;
    for (Case& each : cases_) {
      const std::optional<Lookup> lookup = open_lookup(each);
      if (!lookup || (!groups.empty() && groups.front().space != lookup->space)) continue;
      const auto same = [&](const Group& group) { return group.key == lookup->key; };
      auto group = std::find_if(groups.begin(), groups.end(), same);
      if (group == groups.end()) group = groups.insert(group, {lookup->space, lookup->key, {}});
      group->cases.push_back(&each);
    }
    return groups;
  }

  std::optional<Lookup> open_lookup(const Case& each) const {
    const Watch watch;
    {
      const Pins pins(each.winners);
      (void)request_.op->trace(unplaced_arguments(each.inputs, request_.wanted), target_);
    }
    for (const Lookup& lookup : watch.lookups()) {
      const auto has = [&](const auto& winner) { return winner.first == lookup.space; };
      if (std::none_of(each.winners.begin(), each.winners.end(), has)) return lookup;
    }
    return std::nullopt;
  }

  /// Two spaces are usual: the searches of the first one leave half of the time.
  SearchOptions budget_of(std::size_t searches_left) const {
    SearchOptions options = request_.search;
    const double spent = std::chrono::duration<double>(Clock::now() - begin_).count();
    const bool first = cases_.front().winners.empty();
    const double left = std::max(request_.search.budget_s - spent, 0.0);
    options.budget_s = left / static_cast<double>(searches_left) / (first ? 2 : 1);
    return options;
  }

  const TuneRequest& request_;
  ptx::Target target_;
  Clock::time_point begin_;
  std::vector<Case> cases_;
  std::atomic<std::uint64_t> checks_ = 0;
};

/// The first step of a search of one group, for which no device is needed.
class GroupMaker : public Maker {
 public:
  GroupMaker(const Tuner& tuner, const Group& group) : tuner_(tuner), group_(group) {}
  Assembly assemble(const Config& config) override { return tuner_.assemble(group_, config); }
  void progress(const Progress& progress) override { tuner_.progress(progress); }

 private:
  const Tuner& tuner_;
  const Group& group_;
};

/// What a search of one group does on a GPU.
class GroupOnDevice : public Subject {
 public:
  GroupOnDevice(const Stream& stream, Tuner& tuner, const Group& group)
      : stream_(stream), clock_(stream_), tuner_(tuner), group_(group) {
    for (const Case* each : group.cases) {
      const Pins pins(each->winners);
      rotations_.emplace_back(stream_, each->inputs, tuner.wanted(), kReplayUs);
    }
  }

  Assembly assemble(const Config& config) override { return tuner_.assemble(group_, config); }
  void progress(const Progress& progress) override { tuner_.progress(progress); }

  /// Inputs and the reference's outputs take longer than launches.
  void prepare_check(const Config& config) override {
    Prepared prepared;
    try {
      for (const Case* each : group_.cases) {
        Pins pins(each->winners);
        pins.add(*group_.space, config);
        prepared.cases.push_back(
            make_check_case(tuner_.check_inputs(*each, *group_.space), tuner_.wanted()));
      }
    } catch (const Error& error) {
      prepared.failure = error.message();
    }
    const std::lock_guard lock(mutex_);
    prepared_[config] = std::move(prepared);
  }

  /// A launch that fails puts its candidate out, not the search.
  std::string check(const Config& config) override {
    const Prepared prepared = std::move(prepared_[config]);
    prepared_.erase(config);
    auto each = group_.cases.begin();
    for (const CheckCase& one : prepared.cases) {
      Pins pins((*each++)->winners);
      pins.add(*group_.space, config);
      try {
        std::string wrong = wrong_output(one);
        if (!wrong.empty()) return wrong;
      } catch (const Error& error) {
        return error.message();
      }
    }
    return prepared.failure;
  }

  double measure_us(const Config& config) override {
    const std::vector<Graph>& graphs = graphs_of(config);
    double log_sum = 0;
    std::size_t i = 0;
    for (const Rotation& rotation : rotations_) {
      const Graph& graph = graphs[i++];
      log_sum += std::log(clock_.us([&] { graph.launch(stream_); }) / rotation.launches());
    }
    return std::exp(log_sum / static_cast<double>(graphs.size()));
  }

 private:
  struct Prepared {
    std::vector<CheckCase> cases;
    std::string failure;
  };

  std::string wrong_output(const CheckCase& one) {
    const Session session(stream_.device(), one.inputs, tuner_.wanted());
    session.launch(stream_);
    stream_.synchronize();
    return compare_outputs(one, session);
  }

  /// One a case, captured and warmed up on first use.
  const std::vector<Graph>& graphs_of(const Config& config) {
    std::vector<Graph>& graphs = graphs_[config];
    if (!graphs.empty()) return graphs;
    auto each = group_.cases.begin();
    for (const Rotation& rotation : rotations_) {
      Pins pins((*each++)->winners);
      pins.add(*group_.space, config);
      graphs.push_back(rotation.capture());
      graphs.back().launch(stream_);
    }
    return graphs;
  }

  const Stream& stream_;
  ColdClock clock_;
  Tuner& tuner_;
  const Group& group_;
  std::list<Rotation> rotations_;
  std::map<Config, std::vector<Graph>> graphs_;
  std::map<Config, Prepared> prepared_;
  std::mutex mutex_;  // of prepared_
};

/// Cuts a size down, keeping what it leaves modulo 64 unless other sizes are multiples of it.
/// False: it is small enough.
bool reduce(Problem& problem, const Reducible& reducible) {
  constexpr std::int64_t kAlignment = 64;
  std::int64_t before = 0;
  for (auto& [name, size] : problem.sizes) {
    if (name != reducible.size || size <= reducible.most) continue;
    before = std::exchange(size, reducible.multiples.empty()
                                     ? reducible.most / kAlignment * kAlignment + size % kAlignment
                                     : reducible.most);
  }
  for (auto& [name, size] : problem.sizes) {
    const auto& multiples = reducible.multiples;
    if (before > 0 && std::find(multiples.begin(), multiples.end(), name) != multiples.end())
      size = size / before * reducible.most;
  }
  return before > 0;
}

/// Whether what is pinned suits the inputs: a tile may be too large for rows that were cut down.
bool can_be_made(const Inputs& inputs, const std::vector<std::string>& wanted, ptx::Target target) {
  try {
    (void)inputs.op->trace(unplaced_arguments(inputs, wanted), target);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Inputs check_inputs(const CheckedProblem& checked, const Space& space, ptx::Target target,
                    std::uint64_t seed) {
  const Operator& op = *checked.op;
  Problem problem = parse_problem(op.schema, checked.text);
  Inputs inputs;
  for (const Reducible& reducible : space.reducible) {
    Problem smaller = problem;
    if (!reduce(smaller, reducible)) continue;
    Inputs made{&op, make_inputs(op, smaller, seed), smaller.options};
    if (!can_be_made(made, checked.wanted, target)) continue;
    problem = std::move(smaller);
    inputs = std::move(made);
  }
  if (inputs.op != nullptr) return inputs;
  return {&op, make_inputs(op, problem, seed), problem.options};
}

std::vector<Tuned> tune_operator(const Device& device, const TuneRequest& request) {
  if (device.kind() != DeviceKind::cuda) {
    throw Error(ErrorKind::unsupported,
                "tune: " + device.id() +
                    " has no clock worth reading; use a cuda device, or --dry-run, which lists the "
                    "candidates and assembles them");
  }
  Tuner tuner(device.target(), request);
  const Stream stream(device);
  return tuner.run([&](const Group& group, const SearchOptions& options) {
    GroupOnDevice on_device(stream, tuner, group);
    const std::vector<Config> all = candidates(*group.space, device.properties(), group.key);
    return search(all, on_device, options);
  });
}

std::vector<Tuned> list_candidates(ptx::Target target, const TuneRequest& request) {
  Tuner tuner(target, request);
  return tuner.run([&](const Group& group, SearchOptions options) {
    options.budget_s = request.search.budget_s;
    GroupMaker maker(tuner, group);
    const std::vector<Config> all = candidates(*group.space, DeviceProperties{}, group.key);
    return SearchResult{assemble_all(all, maker, options), 0};
  });
}

}  // namespace tilewright::tune

// SPDX-License-Identifier: Apache-2.0
// lightning_attention as the command line and bindings see it, with its reference.
#include "kernels/kda/reference.h"
#include "kernels/lightning_attention/lightning_attention.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tilewright {
namespace {

constexpr std::array kBf16{bf16};
constexpr std::array kIndices{s32, s64};
constexpr std::array kS32{s32};

constexpr std::array<TensorSpec, 8> kTensors{{
    {.name = "q",
     .role = Role::input,
     .shape = "...,H,K",
     .types = kBf16,
     .doc = "[N,T,H,K]; [N,H,K]: one token; with cu_seqlens [tokens,H,K]"},
    {.name = "k", .role = Role::input, .shape = "...,H,K", .types = kBf16},
    {.name = "v", .role = Role::input, .shape = "...,HV,V", .types = kBf16},
    {.name = "decay",
     .role = Role::input,
     .shape = "H",
     .types = kF32,
     .doc = "s: a head's state shrinks by e^-s a token"},
    {.name = "state",
     .role = Role::inout,
     .presence = Presence::optional,
     .shape = "S,HV,V,K",
     .types = kF32,
     .doc = "absent: zeros"},
    {.name = "indices",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "N",
     .types = kIndices,
     .doc = "the slot of a request; negative: it is inactive; absent: 0 to N - 1"},
    {.name = "cu_seqlens",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "_",
     .types = kS32,
     .doc = "[N+1]: the first token of each request"},
    {.name = "out", .role = Role::output, .shape = "...,HV,V", .types = kBf16},
}};
constexpr std::array<OptionSpec, 2> kOptions{{
    {.name = "scale", .type = OptionType::real, .default_text = "1", .doc = "factor of out"},
    {.name = "commit",
     .type = OptionType::boolean,
     .default_text = "true",
     .doc = "write the state back"},
}};
constexpr std::array<std::string_view, 3> kProblems{
    "T=1,H=32,K=128,HV=32,V=128,S=1,state=f32", "T=128,H=32,K=128,HV=32,V=128,S=128,state=f32",
    "T=8192,H=32,K=128,HV=32,V=128,S=1,state=f32,cu_seqlens=s32"};

LightningOptions options_of(const Arguments& arguments) {
  return {static_cast<float>(arguments.real("scale")), arguments.boolean("commit")};
}

LightningTensors tensors_of(const Arguments& arguments) {
  const View* out = arguments.find("out");
  return {.q = arguments.tensor("q"),
          .k = arguments.tensor("k"),
          .v = arguments.tensor("v"),
          .decay = arguments.tensor("decay"),
          .cu_seqlens = optional_view(arguments, "cu_seqlens"),
          .state = optional_view(arguments, "state"),
          .indices = optional_view(arguments, "indices"),
          .out = out == nullptr ? View{} : *out};
}

std::int64_t workspace_bytes(const Arguments& arguments) {
  return lightning_workspace_bytes(tensors_of(arguments));
}

LightningPlan plan_of(const DeviceProperties& device, const Arguments& arguments) {
  return plan_lightning_attention(device, tensors_of(arguments), options_of(arguments),
                                  arguments.workspace(workspace_bytes(arguments)));
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  arguments.check(Arguments::Outputs::optional);
  return {{"out", bf16, shape_of(arguments.tensor("v"))}};
}

void launch(const Device& device, const Stream& stream, const Arguments& arguments) {
  launch_lightning_attention(stream, plan_of(device.properties(), arguments));
}

class Reference {
 public:
  Reference(const LightningOptions& options, const HostTensors& tensors) : options_(options) {
    const Array& q_array = tensors.at("q");
    const Array& v_array = tensors.at("v");
    std::size_t rank = q_array.shape.size();
    heads_ = q_array.shape[rank - 2], k_ = q_array.shape[rank - 1];
    v_heads_ = v_array.shape[rank - 2], v_ = v_array.shape[rank - 1];
    std::int64_t tokens = element_count(std::span(q_array.shape).first(rank - 2));
    auto values = [&](const char* name) {
      const Array* array = tensors.find(name);
      return array == nullptr ? std::vector<double>{} : to_doubles(*array);
    };
    q_ = values("q"), key_ = values("k"), value_ = values("v"), decay_ = values("decay");
    state = values("state"), slots_ = values("indices");
    out.assign(at(tokens * v_heads_ * v_), std::numeric_limits<double>::quiet_NaN());
    for (double first : values("cu_seqlens"))
      first_.push_back(static_cast<std::int64_t>(first));
    std::int64_t n = q_array.shape[0];
    for (std::int64_t i = 0;
         i <= n && first_.size() < at(n + 1) && tensors.find("cu_seqlens") == nullptr; ++i)
      first_.push_back(n == 0 ? 0 : tokens / n * i);
    pooled_ = !state.empty();
    if (!pooled_) state.assign((first_.size() - 1) * at(v_heads_ * v_ * k_), 0);
  }

  void run() {
    for (std::size_t n = 0; n + 1 < first_.size(); ++n) {
      double slot = slots_.empty() ? static_cast<double>(n) : slots_[n];
      // Without a pool slots only say which sequences are active.
      std::int64_t place = static_cast<std::int64_t>(pooled_ ? slot : static_cast<double>(n));
      for (std::int64_t row = 0; row < v_heads_ * v_ && slot >= 0; ++row)
        run_row(n, row, place);
    }
  }

  std::vector<double> out, state;

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  void run_row(std::size_t n, std::int64_t row, std::int64_t slot) {
    std::int64_t head = row / v_ / (v_heads_ / heads_);
    double* s = &state[at((slot * v_heads_ * v_ + row) * k_)];
    std::vector<double> kept(s, s + k_);
    for (std::int64_t token = first_[n]; token < first_[n + 1]; ++token) {
      std::size_t vector = at((token * heads_ + head) * k_);
      std::size_t place = at(token * v_heads_ * v_ + row);
      double read = 0;
      for (std::size_t i = 0; i < at(k_); ++i) {
        s[i] = std::exp(-decay_[at(head)]) * s[i] + value_[place] * key_[vector + i];
        read += s[i] * q_[vector + i];
      }
      out[place] = options_.scale * read;
    }
    if (!options_.commit) std::copy(kept.begin(), kept.end(), s);
  }

  const LightningOptions& options_;
  std::int64_t heads_ = 0, v_heads_ = 0, k_ = 0, v_ = 0;
  bool pooled_ = false;
  std::vector<std::int64_t> first_;
  std::vector<double> q_, key_, value_, decay_, slots_;
};

void reference(const Arguments& arguments, HostTensors& tensors) {
  LightningOptions options = options_of(arguments);
  Reference reference(options, tensors);
  reference.run();
  tensors.set(make_array("out", f64, tensors.at("v").shape, reference.out));
  if (const Array* state = tensors.find("state"))
    tensors.set(make_array("state", f64, state->shape, reference.state));
}

/// Only f32 arithmetic is between a state and its reference; out is rounded to bf16 besides. Chunks
/// as in kda_prefill.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  if (workspace_bytes(arguments) > 0) return chunk_tolerance(output);
  return kda::token_tolerance(output);
}

std::int64_t bytes(const Arguments& arguments) {
  LightningTensors t = tensors_of(arguments);
  std::int64_t requests = t.cu_seqlens ? t.cu_seqlens->shape[0] - 1 : t.q.shape[0];
  std::int64_t total = 0;
  for (const View* view : {&t.q, &t.k, &t.v, &t.decay, &t.out})
    total += size_bytes(*view);
  if (t.state && t.state->shape[0] > 0) {
    std::int64_t slot = size_bytes(*t.state) / t.state->shape[0];
    total += slot * requests * (options_of(arguments).commit ? 2 : 1);
  }
  return total;
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  LightningPlan plan = plan_of(DeviceProperties{}, arguments);
  if (plan.chunks) {
    traced.push_back(plan.chunks->prepare.trace(target));
    traced.push_back(plan.chunks->scan.trace(target));
  } else if (plan.launch.grid.x > 0) {
    traced.push_back(plan.trace(target));
  }
  return traced;
}

/// The rates of ALiBi-like slopes: s = 8 h / H; one sequence.
void fill(const Problem& problem, std::vector<Array>& inputs) {
  for (Array& input : inputs) {
    if (input.name == "cu_seqlens") {
      auto tokens = static_cast<double>(problem.size("T"));
      input = make_array(input.name, input.type, {2}, std::vector<double>{0, tokens});
    }
    if (input.name != "decay") continue;
    std::vector<double> rates;
    for (std::int64_t h = 0; h < input.shape[0]; ++h)
      rates.push_back(8.0 * static_cast<double>(h + 1) / static_cast<double>(input.shape[0]));
    input = make_array(input.name, input.type, input.shape, rates);
  }
}

constexpr Operator kOperator{
    .schema = {.name = "lightning_attention",
               .version = 1,
               .formula = "S = e^-s S + v k^T; out = scale S q for all tokens in turn",
               .doc = "Linear attention with a fixed decay a head, with the state in place.",
               .tensors = kTensors,
               .options = kOptions,
               .limits =
                   "From 16 tokens on operands are bf16, as q and k are of any size. A NaN or an "
                   "infinity then reaches the tokens of its block of 16 in front of it, too."},
    .outputs = outputs,
    .launch = launch,
    .workspace_bytes = workspace_bytes,
    .reference = reference,
    .tolerance = tolerance,
    .nan_rule = skip_nan,
    .check_contents =
        [](const Arguments& a, std::span<const Array> inputs) {
          const View& q = a.tensor("q");
          check_sequences(a, inputs, q.rank == 4 ? q.shape[0] * q.shape[1] : q.shape[0]);
          check_slots(a, inputs, "indices", "state");
        },
    .bytes = bytes,
    .trace = trace,
    .fill = fill,
    .bench_problems = kProblems};

}  // namespace

const Operator& lightning_attention_operator() { return kOperator; }

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// The operator rope_table as the command line and bindings see it.
#include "kernels/rope_table/reference.h"
#include "kernels/rows/row_schema.h"

namespace tilewright {
namespace {

constexpr std::array kTables{f32, bf16, f16};
constexpr std::array<TensorSpec, 1> kTensors{{
    {.name = "cos_sin",
     .role = Role::output,
     .shape = "P,R",
     .types = kTables,
     .doc = "max_position rows: rotary_dim / 2 cosines, then as many sines"},
}};

constexpr std::array<std::string_view, 5> kScalings{"none", "linear", "dynamic_ntk", "llama3",
                                                    "yarn"};
constexpr std::array<std::string_view, 2> kAngles{"f32", "f64"};
constexpr std::array<std::string_view, 3> kOutTypes{"f32", "bf16", "f16"};
constexpr std::array<std::string_view, 1> kAuto{"auto"};
constexpr std::array<OptionSpec, 14> kOptions{{
    {.name = "theta",
     .type = OptionType::real,
     .default_text = "10000",
     .doc = "base of the frequencies, greater than 1"},
    {.name = "rotary_dim",
     .type = OptionType::integer,
     .default_text = "128",
     .least = 2,
     .most = 1024,
     .doc = "R, even"},
    {.name = "max_position",
     .type = OptionType::integer,
     .default_text = "8192",
     .least = 0,
     .doc = "P"},
    {.name = "scaling",
     .type = OptionType::choice,
     .default_text = "none",
     .words = kScalings,
     .doc = "how frequencies are lowered for longer texts"},
    {.name = "factor",
     .type = OptionType::real,
     .default_text = "1",
     .least = 1,
     .doc = "of all scalings"},
    {.name = "original_max_position",
     .type = OptionType::real,
     .default_text = "8192",
     .least = 1,
     .doc = "of the training; dynamic_ntk, llama3 and yarn"},
    {.name = "low_freq_factor", .type = OptionType::real, .default_text = "1", .doc = "llama3"},
    {.name = "high_freq_factor",
     .type = OptionType::real,
     .default_text = "4",
     .doc = "llama3; greater than low_freq_factor"},
    {.name = "beta_fast", .type = OptionType::real, .default_text = "32", .doc = "yarn"},
    {.name = "beta_slow",
     .type = OptionType::real,
     .default_text = "1",
     .doc = "yarn; less than beta_fast"},
    {.name = "truncate",
     .type = OptionType::boolean,
     .default_text = "true",
     .doc = "yarn: the ramp begins and ends at whole frequencies"},
    {.name = "attention_factor",
     .type = OptionType::real,
     .default_text = "auto",
     .words = kAuto,
     .doc = "yarn: a factor of all elements; auto: 0.1 ln(factor) + 1"},
    {.name = "angle",
     .type = OptionType::choice,
     .default_text = "f32",
     .words = kAngles,
     .doc = "f32: position times frequency is rounded, as in training; f64: it is not"},
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "f32",
     .words = kOutTypes,
     .doc = "type of cos_sin where it is not given"},
}};

// Llama-3 8B, Qwen3-8B, Llama-3.1 8B and gpt-oss-120b.
constexpr std::array<std::string_view, 4> kBenchProblems{
    "rotary_dim=128,max_position=8192,theta=5e5", "rotary_dim=128,max_position=40960,theta=1e6",
    "rotary_dim=128,max_position=131072,theta=5e5,scaling=llama3,factor=8",
    "rotary_dim=64,max_position=131072,theta=150000,scaling=yarn,factor=32,"
    "original_max_position=4096,truncate=false"};

/// Options of other scalings than this one.
void refuse_idle_scaling(const Arguments& a, RopeScaling scaling) {
  const std::string why = "with scaling=" + std::string(a.text("scaling"));
  if (scaling == RopeScaling::none) refuse_idle(a, "factor", why + "; frequencies are not lowered");
  if (scaling == RopeScaling::none || scaling == RopeScaling::linear)
    refuse_idle(a, "original_max_position", why + "; it is for dynamic_ntk, llama3 and yarn");
  for (const char* option : {"low_freq_factor", "high_freq_factor"})
    if (scaling != RopeScaling::llama3) refuse_idle(a, option, why + "; it is for llama3");
  for (const char* option : {"beta_fast", "beta_slow", "truncate", "attention_factor"})
    if (scaling != RopeScaling::yarn) refuse_idle(a, option, why + "; it is for yarn");
}

RopeTableOptions options_of(const Arguments& a) {
  RopeTableOptions options;
  options.theta = a.real("theta");
  const std::string_view scaling = a.text("scaling");
  for (std::size_t i = 0; i < kScalings.size(); ++i) {
    if (kScalings[i] == scaling) options.scaling = static_cast<RopeScaling>(i);
  }
  options.angle = a.text("angle") == "f32" ? RopeAngle::f32 : RopeAngle::f64;
  options.factor = a.real("factor");
  options.original_positions = a.real("original_max_position");
  options.low_freq_factor = a.real("low_freq_factor");
  options.high_freq_factor = a.real("high_freq_factor");
  options.beta_fast = a.real("beta_fast");
  options.beta_slow = a.real("beta_slow");
  options.truncate = a.boolean("truncate");
  options.attention = a.real_or_word("attention_factor");
  refuse_idle_scaling(a, options.scaling);
  return options;
}

std::vector<OutputSpec> outputs(const Arguments& a) {
  return {{"cos_sin",
           *type_from_name(a.text("out_type")),
           {a.integer("max_position"), a.integer("rotary_dim")}}};
}

RopeTablePlan plan_of(const DeviceProperties& device, const Arguments& a) {
  const View& table = a.tensor("cos_sin");
  const OutputSpec wanted = outputs(a).front();
  if (shape_of(table) != wanted.shape) {
    a.fail("cos_sin is " + to_string(table) + "; max_position=" + std::to_string(wanted.shape[0]) +
           " and rotary_dim=" + std::to_string(wanted.shape[1]) + " must be its extents");
  }
  return plan_rope_table(device, table, options_of(a));
}

/// Half an ulp of f32 and of the type; cosine, sine and magnitude in f64 are 2^-50 off at most. An
/// angle that is not rounded has the 2^-51 of its frequency, here and in the reference.
Tolerance tolerance(const Arguments& a, std::string_view) {
  const Type type = a.tensor("cos_sin").type;
  const double twice = type == f32 ? 0 : 0x1p-24;
  const double angle = a.text("angle") == "f32" ? 0 : 2 * 0x1p-51;
  return {.relative = rows::half_ulp(type) + twice + 0x1p-50,
          .absolute =
              rows::half_tiniest(type) + angle * static_cast<double>(a.integer("max_position"))};
}

constexpr Operator kRopeTable{
    .schema = {.name = "rope_table",
               .version = 1,
               .formula = "cos_sin[p] = cos(p f), sin(p f) for f = theta^(-2 i / R), i < R / 2, as "
                          "the scaling lowers it",
               .doc = "Cosines and sines of rotary embeddings, computed in f64.",
               .tensors = kTensors,
               .options = kOptions,
               .limits = "R is even and 1024 at most."},
    .outputs = outputs,
    .launch =
        [](const Device& device, const Stream& stream, const Arguments& a) {
          launch_rope_table(stream, plan_of(device.properties(), a));
        },
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          rope_table_reference(a.integer("max_position"), a.integer("rotary_dim"), options_of(a),
                               tensors);
        },
    .tolerance = tolerance,
    .bytes = [](const Arguments& a) { return size_bytes(a.tensor("cos_sin")); },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          std::vector<Traced> traced;
          traced.push_back(plan_of(DeviceProperties{}, a).trace(target));
          return traced;
        },
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& rope_table_operator() { return kRopeTable; }

}  // namespace tilewright

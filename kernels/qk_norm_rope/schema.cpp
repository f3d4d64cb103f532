// SPDX-License-Identifier: Apache-2.0
// The operators qk_norm, qk_norm_rope and rope as the command line and bindings see them.
#include "kernels/qk_norm_rope/reference.h"
#include "kernels/reshape_and_cache/spread_pages.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewright {
namespace {

enum class Kind : std::uint8_t { norm, norm_rope, rope };

constexpr std::array kIndices{s32, s64};
constexpr TensorSpec kQ{.name = "q",
                        .role = Role::inout,
                        .shape = "T,HQ,D",
                        .types = kReals,
                        .doc = "written unless q_out is given"};
constexpr TensorSpec kK{.name = "k",
                        .role = Role::inout,
                        .shape = "T,HK,D",
                        .types = kReals,
                        .doc = "q's type; written unless k_out is given"};
constexpr TensorSpec kQWeight{.name = "q_weight",
                              .role = Role::input,
                              .presence = Presence::optional,
                              .shape = "D",
                              .types = kReals,
                              .doc = "q's type or f32; absent: 1"};
constexpr TensorSpec kKWeight{.name = "k_weight",
                              .role = Role::input,
                              .presence = Presence::optional,
                              .shape = "D",
                              .types = kReals,
                              .doc = "q_weight's type; absent: 1"};
constexpr TensorSpec kPositions{.name = "positions",
                                .role = Role::input,
                                .shape = "T",
                                .types = kIndices,
                                .doc = "below P; negative ones count as 0"};
constexpr TensorSpec kCosSin{.name = "cos_sin",
                             .role = Role::input,
                             .presence = Presence::optional,
                             .shape = "P,R",
                             .types = kReals,
                             .doc =
                                 "R / 2 cosines, then R / 2 sines of each position; this or "
                                 "inv_freq"};
constexpr TensorSpec kInvFreq{.name = "inv_freq",
                              .role = Role::input,
                              .presence = Presence::optional,
                              .shape = "F",
                              .types = kF32,
                              .doc =
                                  "instead of cos_sin, R / 2 frequencies: angles are position "
                                  "inv_freq in f32, of any position"};
constexpr TensorSpec kQOut{.name = "q_out",
                           .role = Role::output,
                           .presence = Presence::optional,
                           .shape = "T,HQ,D",
                           .types = kReals,
                           .may_alias = "q",
                           .doc = "absent: q is overwritten"};
constexpr TensorSpec kKOut{.name = "k_out",
                           .role = Role::output,
                           .presence = Presence::optional,
                           .shape = "T,HK,D",
                           .types = kReals,
                           .may_alias = "k",
                           .doc = "absent: k is overwritten"};
constexpr TensorSpec kV{.name = "v",
                        .role = Role::input,
                        .presence = Presence::optional,
                        .shape = "T,HK,D",
                        .types = kReals,
                        .doc = "q's type; written to value_cache and to v_out as it is"};
constexpr TensorSpec kVOut{.name = "v_out",
                           .role = Role::output,
                           .presence = Presence::optional,
                           .shape = "T,HK,D",
                           .types = kReals,
                           .doc = "a copy of v, with or without a cache"};
constexpr TensorSpec kSlotMapping{.name = "slot_mapping",
                                  .role = Role::input,
                                  .presence = Presence::optional,
                                  .shape = "T",
                                  .types = kIndices,
                                  .doc = "places in the caches, as in reshape_and_cache"};
constexpr std::array kCacheTypes{bf16, f16, f32, e4m3, e5m2};
constexpr TensorSpec kKScale{.name = "k_scale",
                             .role = Role::input,
                             .presence = Presence::optional,
                             .shape = "_",
                             .types = kF32,
                             .doc = "[1] or [HK]: divides keys for codes; absent: 1"};
constexpr TensorSpec kVScale{.name = "v_scale",
                             .role = Role::input,
                             .presence = Presence::optional,
                             .shape = "_",
                             .types = kF32,
                             .doc = "as k_scale, for values"};
constexpr TensorSpec kKeyCache{.name = "key_cache",
                               .role = Role::inout,
                               .presence = Presence::optional,
                               .shape = "*",
                               .types = kCacheTypes,
                               .doc =
                                   "of cache_layout; q's type, e4m3 or e5m2; takes what k_out "
                                   "gets"};
constexpr TensorSpec kValueCache{.name = "value_cache",
                                 .role = Role::inout,
                                 .presence = Presence::optional,
                                 .shape = "*",
                                 .types = kCacheTypes,
                                 .doc = "as key_cache; v, slot_mapping and both caches, or none"};
constexpr std::array kNormTensors{kQ, kK, kQWeight, kKWeight, kQOut, kKOut};
constexpr std::array kNormRopeTensors{
    kQ, kK,           kQWeight,  kKWeight,    kPositions, kCosSin, kQOut,    kKOut,
    kV, kSlotMapping, kKeyCache, kValueCache, kKScale,    kVScale, kInvFreq, kVOut};
constexpr std::array kRopeTensors{kQ, kK, kPositions, kCosSin, kQOut, kKOut, kInvFreq};

constexpr OptionSpec kEps{.name = "eps",
                          .type = OptionType::real,
                          .default_text = "1e-6",
                          .least = 0,
                          .doc = "added to the mean of the squares"};
constexpr std::array<std::string_view, 2> kStyles{"neox", "interleaved"};
constexpr OptionSpec kStyle{.name = "style",
                            .type = OptionType::choice,
                            .default_text = "neox",
                            .words = kStyles,
                            .doc = "which elements turn together: halves or neighbours"};
constexpr std::array<std::string_view, 2> kBetween{"keep_f32", "round"};
constexpr OptionSpec kBetweenOption{.name = "between",
                                    .type = OptionType::choice,
                                    .default_text = "keep_f32",
                                    .words = kBetween,
                                    .doc = "whether the norm is rounded before the rotation"};
constexpr OptionSpec kAttentionFactor{.name = "attention_factor",
                                      .type = OptionType::real,
                                      .default_text = "1",
                                      .doc = "inv_freq: a factor of cosines and sines, for YaRN"};
constexpr std::array<std::string_view, 2> kCacheLayouts{"nhd", "hnd"};
constexpr OptionSpec kCacheLayout{
    .name = "cache_layout",
    .type = OptionType::choice,
    .default_text = "nhd",
    .words = kCacheLayouts,
    .doc = "nhd: [pages, page size, HK, D]; hnd: [pages, HK, page size, D]"};
constexpr std::array kNormOptions{kEps, kWeightBiasOption};
constexpr std::array kNormRopeOptions{kEps,           kWeightBiasOption, kStyle,
                                      kBetweenOption, kCacheLayout,      kAttentionFactor};
constexpr std::array kRopeOptions{kStyle, kAttentionFactor};

constexpr std::array<std::string_view, 4> kNormProblems{
    "T=8192,HQ=32,HK=4,D=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16",
    "T=8192,HQ=64,HK=8,D=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16",
    "T=64,HQ=32,HK=4,D=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16",
    "T=1,HQ=32,HK=8,D=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16"};
constexpr std::array<std::string_view, 5> kNormRopeProblems{
    "T=8192,HQ=32,HK=4,D=128,P=40960,R=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16,positions=s64,"
    "cos_sin=f32",
    "T=64,HQ=32,HK=4,D=128,P=40960,R=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16,positions=s64,"
    "cos_sin=f32",
    "T=1,HQ=32,HK=8,D=128,P=40960,R=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16,positions=s64,"
    "cos_sin=f32",
    "T=8192,HQ=32,HK=4,D=128,P=40960,R=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16,positions=s64,"
    "cos_sin=f32,v=bf16,slot_mapping=s64,key_cache=bf16,value_cache=bf16",
    "T=8192,HQ=32,HK=4,D=128,P=40960,R=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16,positions=s64,"
    "cos_sin=f32,v=bf16,slot_mapping=s64,key_cache=e4m3,value_cache=e4m3,k_scale=f32,v_scale=f32"};
constexpr std::array<std::string_view, 3> kRopeProblems{
    "T=8192,HQ=32,HK=8,D=128,P=8192,R=128,q=bf16,k=bf16,positions=s64,cos_sin=f32",
    "T=8192,HQ=64,HK=8,D=64,P=8192,R=64,q=bf16,k=bf16,positions=s64,cos_sin=f32",
    "T=64,HQ=32,HK=8,D=128,P=8192,R=128,q=bf16,k=bf16,positions=s64,cos_sin=f32"};

constexpr std::string_view op_name(Kind kind) {
  return kind == Kind::norm ? "qk_norm" : kind == Kind::rope ? "rope" : "qk_norm_rope";
}

template <Kind K>
QkOptions options_of(const Arguments& arguments) {
  QkOptions options;
  options.norm = K != Kind::rope;
  if constexpr (K != Kind::rope) {
    options.eps = static_cast<float>(arguments.real("eps"));
    options.weight_bias = static_cast<float>(arguments.real("weight_bias"));
  }
  if constexpr (K != Kind::norm) {
    options.style = arguments.text("style") == "neox" ? RopeStyle::neox : RopeStyle::interleaved;
    if (arguments.find("inv_freq") == nullptr)
      refuse_idle(arguments, "attention_factor", "without inv_freq");
    options.attention_factor = static_cast<float>(arguments.real("attention_factor"));
  }
  if constexpr (K == Kind::norm_rope) {
    options.round_between = arguments.text("between") == "round";
    if (arguments.find("key_cache") == nullptr)
      refuse_idle(arguments, "cache_layout", "without key_cache and value_cache");
    if (arguments.text("cache_layout") == "hnd") options.cache_layout = CacheLayout::hnd;
  }
  return options;
}

template <Kind K>
QkTensors tensors_of(const Arguments& arguments) {
  const View& q = arguments.tensor("q");
  const View& k = arguments.tensor("k");
  QkTensors tensors{.q = q,
                    .k = k,
                    .q_out = optional_view(arguments, "q_out").value_or(q),
                    .k_out = optional_view(arguments, "k_out").value_or(k)};
  if constexpr (K != Kind::rope) {
    tensors.q_weight = optional_view(arguments, "q_weight");
    tensors.k_weight = optional_view(arguments, "k_weight");
  }
  if constexpr (K != Kind::norm) {
    tensors.positions = arguments.tensor("positions");
    tensors.cos_sin = optional_view(arguments, "cos_sin");
    tensors.inv_freq = optional_view(arguments, "inv_freq");
  }
  if constexpr (K == Kind::norm_rope) {
    tensors.v = optional_view(arguments, "v");
    tensors.slot_mapping = optional_view(arguments, "slot_mapping");
    tensors.key_cache = optional_view(arguments, "key_cache");
    tensors.value_cache = optional_view(arguments, "value_cache");
    tensors.k_scale = optional_view(arguments, "k_scale");
    tensors.v_scale = optional_view(arguments, "v_scale");
    tensors.v_out = optional_view(arguments, "v_out");
  }
  return tensors;
}

/// v_out is all that v is for without a cache.
template <Kind K>
std::vector<OutputSpec> outputs(const Arguments& arguments) {
  const View& q = arguments.tensor("q");
  const View& k = arguments.tensor("k");
  std::vector<OutputSpec> specs{{"q_out", q.type, shape_of(q)}, {"k_out", k.type, shape_of(k)}};
  if constexpr (K == Kind::norm_rope) {
    if (const View* v = arguments.find("v")) {
      const bool has_cache = arguments.find("key_cache") != nullptr;
      specs.push_back(
          {"v_out", v->type, shape_of(*v), has_cache ? Making::by_presence : Making::always});
    }
  }
  return specs;
}

template <Kind K>
QkPlan plan_of(const DeviceProperties& device, const Arguments& arguments) {
  return plan_qk(op_name(K), device, tensors_of<K>(arguments), options_of<K>(arguments));
}

template <Kind K>
void launch(const Device& device, const Stream& stream, const Arguments& arguments) {
  launch_qk(stream, plan_of<K>(device.properties(), arguments));
}

template <Kind K>
void reference(const Arguments& arguments, HostTensors& tensors) {
  if constexpr (K == Kind::norm_rope) {
    if (arguments.find("v_out") != nullptr) {
      Array copied = tensors.at("v");
      copied.name = "v_out";
      tensors.set(std::move(copied));
    }
  }
  qk_reference(options_of<K>(arguments), tensors,
               arguments.find("q_out") != nullptr ? "q_out" : "q",
               arguments.find("k_out") != nullptr ? "k_out" : "k");
}

/// Contract, I 2.2: half an ulp of the output plus (log2(D) + 14) 2^-24 of |a| + |c|, the two
/// elements that turn together, after the norm: at most twice the head's largest times sqrt(2).
/// Rounding before the rotation may land on the neighbour of a tie in both.
template <Kind K>
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  if (output == "value_cache" || output == "v_out") return {};  // the same bits, or exact codes
  Type type = arguments.tensor("q").type;
  double computed = std::log2(static_cast<double>(arguments.size("D"))) + 14;
  if (K == Kind::norm) return rounded_once(type, computed - 6);  // I 2.1: as rms_norm
  Tolerance tolerance = rounded_once(type, 0);
  tolerance.of_row_max = 2 * std::sqrt(2.0) * computed * 0x1p-24;
  if (options_of<K>(arguments).round_between) {
    tolerance.of_row_max += 2 * std::sqrt(2.0) * 2 * rows::half_ulp(type);
  }
  if (output == "key_cache" && arguments.tensor("key_cache").type != type) {  // rounded once more
    const Type code = arguments.tensor("key_cache").type;
    tolerance.relative += rows::half_ulp(code) * (1 + 2 * rows::half_ulp(type));
    tolerance.absolute = rows::half_tiniest(code);
  }
  return tolerance;
}

/// Each element of q and k once in and once out, of v once in and, with v_out, once out; the same
/// of k and v into the cache; of the table one row a token.
template <Kind K>
std::int64_t bytes(const Arguments& arguments) {
  std::int64_t total = 2 * (size_bytes(arguments.tensor("q")) + size_bytes(arguments.tensor("k")));
  QkTensors tensors = tensors_of<K>(arguments);
  if (tensors.v) total += size_bytes(*tensors.v);
  if (tensors.v_out) total += size_bytes(*tensors.v_out);
  if (tensors.v && tensors.key_cache && tensors.value_cache) {
    const std::int64_t codes =
        bits(tensors.key_cache->type) / 8 + bits(tensors.value_cache->type) / 8;
    total += size(*tensors.v) * codes;
  }
  for (const std::optional<View>& view : {tensors.q_weight, tensors.k_weight, tensors.positions,
                                          tensors.slot_mapping, tensors.inv_freq}) {
    if (view) total += size_bytes(*view);
  }
  if (tensors.cos_sin) {
    const View& table = *tensors.cos_sin;
    std::int64_t row_count = std::min(table.shape[0], tensors.q.shape[0]);
    total += row_count * table.shape[1] * bits(table.type) / 8;
  }
  return total;
}

template <Kind K>
std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(plan_of<K>(traced_device(), arguments).trace(target));
  return traced;
}

/// Rows of the table, or positions of common models.
std::int64_t positions_of(const Problem& problem) {
  for (const auto& [name, value] : problem.sizes) {
    if (name == "P") return std::max<std::int64_t>(1, value);
  }
  return 40960;
}
/// theta^(-2 i / R) for theta = 10^6.
void fill_frequencies(Array& array) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < array.shape[0]; ++i)
    values.push_back(std::pow(1e6, -static_cast<double>(i) / static_cast<double>(array.shape[0])));
  array = make_array(array.name, array.type, array.shape, values);
}

/// Positions one after another, from the start again after the last, and pages all over a cache.
void fill_positions(const Problem& problem, std::vector<Array>& inputs) {
  const SpreadPages spread = spread_pages(problem.size("T"));
  bool heads_first = false;
  for (const auto& [name, value] : problem.options) {
    if (name == "cache_layout") heads_first = value == "hnd";
  }
  for (Array& input : inputs) {
    if (input.name == "slot_mapping")
      input = make_array(input.name, input.type, input.shape, spread.slots);
    if (input.name == "key_cache" || input.name == "value_cache") {
      std::vector<std::int64_t> shape{spread.pages, SpreadPages::kPageSize, problem.size("HK"),
                                      problem.size("D")};
      if (heads_first) std::swap(shape[1], shape[2]);
      input = make_array(input.name, input.type, shape);
    }
    if (input.name == "k_scale" || input.name == "v_scale")
      input = make_array(input.name, f32, {1}, std::vector<double>{0.0625});
    if (input.name == "inv_freq") fill_frequencies(input);
    if (input.name != "positions") continue;
    const std::int64_t count = positions_of(problem);
    std::vector<double> values;
    for (std::int64_t i = 0; i < input.shape[0]; ++i)
      values.push_back(static_cast<double>(i % count));
    input = make_array("positions", input.type, input.shape, values);
  }
}

/// Of the positions that are known here: a kernel would read beyond the table.
void check_contents(const Arguments& arguments, std::span<const Array> inputs) {
  const Array* positions = find_input(inputs, "positions");
  if (positions == nullptr || arguments.find("cos_sin") == nullptr) return;
  const std::int64_t most = arguments.size("P");
  if (most == 0) return;  // refused whatever the positions are
  const std::vector<double> all = to_doubles(*positions);
  for (std::size_t t = 0; t < all.size(); ++t) {
    if (all[t] < static_cast<double>(most)) continue;
    arguments.fail("positions[" + std::to_string(t) + "] is " +
                   std::to_string(static_cast<std::int64_t>(all[t])) + "; cos_sin has " +
                   std::to_string(most) + " rows");
  }
}

template <Kind K>
constexpr Operator make_operator(std::string_view formula, std::string_view doc,
                                 std::span<const TensorSpec> tensors,
                                 std::span<const OptionSpec> options,
                                 std::span<const std::string_view> problems) {
  return {
      .schema = {.name = op_name(K),
                 .version = 1,
                 .formula = formula,
                 .doc = doc,
                 .tensors = tensors,
                 .options = options,
                 .limits = "D is 1 to 1024, and a token has 65536 heads at most. As many elements "
                           "of a head turn as cos_sin is wide, or inv_freq twice (rotary_dim "
                           "elsewhere); positions below 0 count as 0, and those behind the table "
                           "are refused where they are known. between=round is bit for bit "
                           "qk_norm, then rope, where all of a head turns and D is a power of two; "
                           "else a head's sum has another order."},
      .outputs = outputs<K>,
      .launch = launch<K>,
      .reference = reference<K>,
      .tolerance = tolerance<K>,
      .check_contents = check_contents,
      .bytes = bytes<K>,
      .trace = trace<K>,
      .fill = K == Kind::norm ? nullptr : fill_positions,
      .bench_problems = problems};
}

constexpr Operator kQkNorm = make_operator<Kind::norm>(
    "q = q / sqrt(mean(q^2) + eps) * (q_weight + weight_bias) for each head; k alike",
    "Root-mean-square normalisation of all heads of Q and K in one launch.", kNormTensors,
    kNormOptions, kNormProblems);
constexpr Operator kQkNormRope = make_operator<Kind::norm_rope>(
    "q = rope(q / sqrt(mean(q^2) + eps) * (q_weight + weight_bias)) for each head; k alike",
    "Root-mean-square normalisation, then rotation, of all heads of Q and K in one launch, which "
    "may copy V and write a cache.",
    kNormRopeTensors, kNormRopeOptions, kNormRopeProblems);
constexpr Operator kRope = make_operator<Kind::rope>(
    "(a, b) = (a cos - b sin, b cos + a sin) for the pairs of the first R elements of each head",
    "Rotary position embedding of Q and K, by a table or by frequencies.", kRopeTensors,
    kRopeOptions, kRopeProblems);

}  // namespace

const Operator& qk_norm_operator() { return kQkNorm; }
const Operator& qk_norm_rope_operator() { return kQkNormRope; }
const Operator& rope_operator() { return kRope; }

}  // namespace tilewright

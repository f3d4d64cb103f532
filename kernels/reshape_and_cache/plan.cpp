// SPDX-License-Identifier: Apache-2.0
// The host side of reshape_and_cache: checks, access widths, grid.
#include "kernels/reshape_and_cache/cache_codes.h"
#include "kernels/reshape_and_cache/reshape_and_cache.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/stream.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxElems = std::int64_t{1} << 24;  // of a token's keys or values

constexpr std::array<tune::KeySpec, 3> kKeys{
    {{"bits"}, {"access"}, {"accesses", tune::Match::nearest}}};
constexpr std::array kThreads{32, 64, 128, 256, 512};
constexpr std::array kTurns{1, 2, 4};
constexpr std::array<tune::Knob, 2> kKnobs{{{"threads", kThreads}, {"turns", kTurns}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"T", 67}, {"N", 67}}};
tune::Config standard(const DeviceProperties&, const tune::Key&) { return {128, 1}; }
bool valid(const DeviceProperties&, const tune::Key&, const tune::Config& config) {
  return config[0] >= 32 && config[0] <= 1024 && config[0] % 32 == 0 && config[1] >= 1 &&
         config[1] <= 8;
}
constexpr tune::Space kSpace{"reshape_and_cache", kKeys, kKnobs, standard, valid, kReducible};
/// Of caches of another type than their source's: a thread has work beside its accesses.
constexpr tune::Space kCodesSpace{
    "reshape_and_cache.codes", kKeys, kKnobs, standard, valid, kReducible};

bool is_fp8(Type type) { return type == e4m3 || type == e5m2; }

constexpr CacheNames kKeyNames{"key", "key_cache", "k_scale"};
constexpr CacheNames kValueNames{"value", "value_cache", "v_scale"};

struct Checks {
  const CacheWriteTensors& t;  ///< caches paged
  rows::Caller caller;

  void slots() const {
    if (!rows::is_index_type(t.slot_mapping.type)) {
      caller.refuse("slot_mapping has type " + std::string(name(t.slot_mapping.type)) +
                    "; it must be s32 or s64");
    }
    rows::check_vector(t.slot_mapping, "slot_mapping", t.slot_mapping.shape[0], caller);
    if (t.skipped && (t.skipped->type != u32 || size(*t.skipped) != 1))
      caller.refuse("skipped is " + to_string(*t.skipped) + "; it must be u32[1]");
  }

  void part(const View& in, const View& cache, const std::optional<View>& scale,
            const CacheNames& names) const {
    const std::string what = std::string(names.in) + " is " + to_string(in);
    if (in.rank != 3) caller.refuse(what + "; it must have the modes [N, heads, D]");
    if (!rows::is_real_type(in.type) && !is_fp8(in.type))
      caller.refuse(what + "; it must be of bf16, f16, f32, e4m3 or e5m2");
    if (in.shape[2] > 1 && in.stride[2] != 1) caller.refuse(what + "; its last stride must be 1");
    if (in.shape[0] < t.slot_mapping.shape[0]) {
      caller.refuse(what + " and slot_mapping " + to_string(t.slot_mapping) +
                    "; it must have as many tokens at least");
    }
    const std::int64_t elems = in.shape[1] * in.shape[2];
    if (elems < 1 || elems > kMaxElems)
      caller.refuse(what + "; a token must have 1 to " + std::to_string(kMaxElems) + " elements");
    if (cache.shape[2] != in.shape[1] || cache.shape[3] * cache.shape[4] != in.shape[2]) {
      caller.refuse(what + " and " + std::string(names.cache) + " has " +
                    std::to_string(cache.shape[2]) + " heads of " +
                    std::to_string(cache.shape[3] * cache.shape[4]) +
                    " elements; they must be equal");
    }
    check_cache_codes(in, cache, scale, names, caller);
  }
};

void check_memory(const CacheWriteTensors& t, const rows::Caller& caller) {
  const std::pair<const View*, const char*> caches[] = {{&t.key_cache, "key_cache"},
                                                        {&t.value_cache, "value_cache"}};
  const std::pair<const View*, const char*> inputs[] = {
      {&t.key, "key"}, {&t.value, "value"}, {&t.slot_mapping, "slot_mapping"}};
  for (const auto& [cache, cache_name] : caches) {
    rows::check_distinct(*cache, cache_name, caller);
    for (const auto& [input, input_name] : inputs)
      rows::check_apart(*input, input_name, *cache, cache_name, caller);
  }
  if (overlap(t.key_cache, t.value_cache))
    caller.refuse("key_cache and value_cache overlap; they must be apart");
  if (!t.skipped) return;
  for (const auto& [view, which] : caches)
    rows::check_apart(*view, which, *t.skipped, "skipped", caller);
  for (const auto& [view, which] : inputs)
    rows::check_apart(*view, which, *t.skipped, "skipped", caller);
}

CachePart part_of(View& in, View& cache) {
  CachePart part{.heads = static_cast<int>(in.shape[1]),
                 .d = static_cast<int>(in.shape[2]),
                 .converts = in.type != cache.type};
  if (!part.converts) {
    in = rows::as_bits(in);
    cache = rows::as_bits(cache);
  }
  part.vector_elems = rows::common_vector(in.type, std::array{in, cache});
  return part;
}

CacheWrite<TensorArg> args_of(const CacheWriteTensors& t) {
  constexpr DynamicModes kOuter{.extents = 1, .strides = 1};
  auto fixed = [](const std::optional<View>& view) {
    return view ? std::optional(tensor_arg(*view)) : std::nullopt;
  };
  return {tensor_arg(t.key, kOuter),
          tensor_arg(t.value, kOuter),
          tensor_arg(t.slot_mapping, {.extents = 1}),
          fixed(t.k_scale),
          fixed(t.v_scale),
          tensor_arg(t.key_cache, kOuter),
          tensor_arg(t.value_cache, kOuter),
          fixed(t.skipped)};
}

}  // namespace

ReshapeAndCachePlan plan_reshape_and_cache(const DeviceProperties& device,
                                           const CacheWriteTensors& tensors, CacheLayout layout,
                                           SourceLoc at) {
  rows::Caller caller{"reshape_and_cache", at};
  ReshapeAndCachePlan plan;
  plan.tensors = tensors;
  CacheWriteTensors& t = plan.tensors;
  t.key_cache = paged(tensors.key_cache, layout, "key_cache", caller);
  t.value_cache = paged(tensors.value_cache, layout, "value_cache", caller);
  const Checks checks{t, caller};
  checks.slots();
  checks.part(t.key, t.key_cache, t.k_scale, kKeyNames);
  checks.part(t.value, t.value_cache, t.v_scale, kValueNames);
  check_same_pages(t.key_cache, t.value_cache, caller);
  check_memory(t, caller);
  CacheWriteConfig& config = plan.config;
  config.parts = {part_of(t.key, t.key_cache), part_of(t.value, t.value_cache)};
  const std::int64_t tokens = t.slot_mapping.shape[0];
  const std::int64_t key_accesses = tokens * config.parts[0].accesses();
  const std::int64_t value_accesses = tokens * config.parts[1].accesses();
  const tune::Config chosen =
      tune::choose(config.parts[0].converts ? kCodesSpace : kSpace, device,
                   {bits(t.key.type), config.parts[0].vector_elems, key_accesses});
  config.threads = chosen[0];
  config.turns = chosen[1];
  const int of_block = config.threads * config.turns;
  config.wide_index = std::max(key_accesses, value_accesses) > (std::int64_t{1} << 30);
  plan.args = args_of(t);
  plan.key_blocks = rows::row_blocks(key_accesses, of_block, caller);
  plan.launch.grid.x =
      rows::row_blocks(plan.key_blocks + rows::ceil_div(value_accesses, of_block), 1, caller);
  plan.launch.block.x = config.threads;
  return plan;
}

std::string ReshapeAndCachePlan::key() const {
  std::string text = "reshape_and_cache/4 t=" + std::to_string(config.threads) + "x" +
                     std::to_string(config.turns) + (config.wide_index ? " wide" : "");
  for (const CachePart& part : config.parts) {
    text += " " + std::to_string(part.heads) + "x" + std::to_string(part.d) +
            " v=" + std::to_string(part.vector_elems) + (part.converts ? " convert" : " copy");
  }
  for (const TensorArg* arg :
       {&args.key, &args.value, &args.slot_mapping, &args.key_cache, &args.value_cache}) {
    text += " | " + to_string(*arg);
  }
  for (const std::optional<TensorArg>* arg : {&args.k_scale, &args.v_scale, &args.skipped})
    text += " | " + rows::key_text(*arg);
  return text;
}

Parameters ReshapeAndCachePlan::parameters() const {
  Parameters parameters;
  auto add = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, *view);
  };
  add(args.key, tensors.key);
  add(args.value, tensors.value);
  add(args.slot_mapping, tensors.slot_mapping);
  add(args.k_scale, tensors.k_scale);
  add(args.v_scale, tensors.v_scale);
  add(args.key_cache, tensors.key_cache);
  add(args.value_cache, tensors.value_cache);
  add(args.skipped, tensors.skipped);
  parameters.add(key_blocks);
  return parameters;
}

void launch_reshape_and_cache(const Stream& stream, const ReshapeAndCachePlan& plan, SourceLoc at) {
  if (plan.launch.grid.x == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

void reshape_and_cache(const Stream& stream, const CacheWriteTensors& tensors, CacheLayout layout,
                       SourceLoc at) {
  launch_reshape_and_cache(
      stream, plan_reshape_and_cache(stream.device().properties(), tensors, layout, at), at);
}

}  // namespace tilewright

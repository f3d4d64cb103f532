// SPDX-License-Identifier: Apache-2.0
// The operator reshape_and_cache as the command line and bindings see it.
#include "kernels/reshape_and_cache/reference.h"
#include "kernels/reshape_and_cache/spread_pages.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace tilewright {
namespace {

constexpr std::array kSources{bf16, f16, f32, e4m3, e5m2};
constexpr std::array kIndices{s64, s32};
constexpr std::array kCounts{u32};

constexpr std::array<TensorSpec, 8> kTensors{{
    {.name = "key",
     .role = Role::input,
     .shape = "N,HK,D",
     .types = kSources,
     .doc = "of T tokens, which padding may follow"},
    {.name = "value", .role = Role::input, .shape = "N,HK,DV", .types = kSources, .doc = "as key"},
    {.name = "slot_mapping",
     .role = Role::input,
     .shape = "T",
     .types = kIndices,
     .doc = "page times page size + place in the page; negative: skip the token"},
    {.name = "k_scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "_",
     .types = kF32,
     .doc = "[1] or [HK]: divides keys for an e4m3 or e5m2 cache; absent: 1"},
    {.name = "v_scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "_",
     .types = kF32,
     .doc = "as k_scale, for values"},
    {.name = "key_cache",
     .role = Role::inout,
     .shape = "*",
     .types = kSources,
     .doc = "pages of the layout; key's type, e4m3 or e5m2"},
    {.name = "value_cache",
     .role = Role::inout,
     .shape = "*",
     .types = kSources,
     .doc = "as key_cache"},
    {.name = "skipped",
     .role = Role::inout,
     .presence = Presence::optional,
     .shape = "1",
     .types = kCounts,
     .doc = "tokens with a slot beyond the cache are added to it"},
}};

constexpr std::array<std::string_view, 3> kLayouts{"nhd", "hnd", "v0"};
constexpr std::array<OptionSpec, 1> kOptions{{
    {.name = "layout",
     .type = OptionType::choice,
     .default_text = "nhd",
     .words = kLayouts,
     .doc = "nhd: [pages, page size, HK, D]; hnd: [pages, HK, page size, D]; v0: keys [pages, HK, "
            "D / x, page size, x], values [pages, HK, DV, page size]"},
}};

// Qwen3-30B-A3B and Llama-3 8B.
constexpr std::array<std::string_view, 5> kBenchProblems{
    "T=8192,N=8192,HK=4,D=128,DV=128,key=bf16,value=bf16,key_cache=bf16,value_cache=bf16",
    "T=64,N=64,HK=8,D=128,DV=128,key=bf16,value=bf16,key_cache=bf16,value_cache=bf16",
    "T=8192,N=8192,HK=8,D=128,DV=128,key=bf16,value=bf16,k_scale=f32,v_scale=f32,key_cache=e4m3,"
    "value_cache=e4m3",
    "T=8192,N=8192,HK=8,D=128,DV=128,key=bf16,value=bf16,key_cache=bf16,value_cache=bf16,"
    "layout=hnd",
    "T=1,N=1,HK=8,D=128,DV=128,key=bf16,value=bf16,key_cache=bf16,value_cache=bf16"};

CacheLayout layout_named(std::string_view text) {
  return text == "nhd" ? CacheLayout::nhd : text == "hnd" ? CacheLayout::hnd : CacheLayout::v0;
}

ReshapeAndCachePlan plan_of(const DeviceProperties& device, const Arguments& a) {
  return plan_reshape_and_cache(device,
                                {.key = a.tensor("key"),
                                 .value = a.tensor("value"),
                                 .slot_mapping = a.tensor("slot_mapping"),
                                 .k_scale = optional_view(a, "k_scale"),
                                 .v_scale = optional_view(a, "v_scale"),
                                 .key_cache = a.tensor("key_cache"),
                                 .value_cache = a.tensor("value_cache"),
                                 .skipped = optional_view(a, "skipped")},
                                layout_named(a.text("layout")));
}

/// Tokens in and out once, and their slots.
std::int64_t bytes(const Arguments& a) {
  const std::int64_t heads = a.size("T") * a.size("HK");
  auto part = [&](const char* in, const char* cache, const char* d) {
    return heads * a.size(d) * (bits(a.tensor(in).type) + bits(a.tensor(cache).type)) / 8;
  };
  return part("key", "key_cache", "D") + part("value", "value_cache", "DV") +
         size_bytes(a.tensor("slot_mapping"));
}

std::vector<std::int64_t> cache_shape(CacheLayout layout, bool keys, std::int64_t pages,
                                      std::int64_t heads, std::int64_t d, Type type) {
  constexpr std::int64_t kSize = SpreadPages::kPageSize;
  if (layout == CacheLayout::nhd) return {pages, kSize, heads, d};
  if (layout == CacheLayout::hnd) return {pages, heads, kSize, d};
  if (!keys) return {pages, heads, d, kSize};
  const std::int64_t x = std::gcd(d, std::int64_t{128} / bits(type));  // 16 bytes where D allows it
  return {pages, heads, d / x, kSize, x};
}

/// Scales are 1/16.
void fill_cache(const Problem& problem, std::vector<Array>& inputs) {
  const SpreadPages spread = spread_pages(problem.size("T"));
  CacheLayout layout = CacheLayout::nhd;
  for (const auto& [name, value] : problem.options) {
    if (name == "layout") layout = layout_named(value);
  }
  for (Array& array : inputs) {
    const bool keys = array.name == "key_cache";
    if (keys || array.name == "value_cache") {
      array = make_array(array.name, array.type,
                         cache_shape(layout, keys, spread.pages, problem.size("HK"),
                                     problem.size(keys ? "D" : "DV"), array.type));
    }
    if (array.name == "k_scale" || array.name == "v_scale")
      array = make_array(array.name, f32, {1}, std::vector<double>{0.0625});
    if (array.name == "skipped") array = make_array("skipped", u32, {1}, std::vector<double>{0});
    if (array.name == "slot_mapping") {
      array = make_array("slot_mapping", array.type,
                         {static_cast<std::int64_t>(spread.slots.size())}, spread.slots);
    }
  }
}

/// Of two tokens in one place of the cache either may be there afterwards.
void check_contents(const Arguments& a, std::span<const Array> inputs) {
  const ReshapeAndCachePlan plan = plan_of(DeviceProperties{}, a);
  const View& cache = plan.tensors.key_cache;
  check_distinct_indices(a, *find_input(inputs, "slot_mapping"), cache.shape[0] * cache.shape[1],
                         "each token must have a place of its own");
}

constexpr Operator kReshapeAndCache{
    .schema = {.name = "reshape_and_cache",
               .version = 1,
               .formula =
                   "key_cache[slot / page size, slot % page size] = key[t] / k_scale for slot "
                   "= slot_mapping[t]; values alike",
               .doc = "Writes keys and values of new tokens into the pages of a cache.",
               .tensors = kTensors,
               .options = kOptions,
               .limits =
                   "Both caches have the same pages. Two tokens for one slot are refused where "
                   "slots are known; those below 0 are skipped, those behind the cache skipped "
                   "and counted."},
    .outputs = [](const Arguments&) -> std::vector<OutputSpec> { return {}; },
    .launch =
        [](const Device& device, const Stream& stream, const Arguments& a) {
          launch_reshape_and_cache(stream, plan_of(device.properties(), a));
        },
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          reshape_and_cache_reference(layout_named(a.text("layout")), tensors);
        },
    .tolerance = [](const Arguments&, std::string_view) { return Tolerance{}; },  // the same bits
    .check_contents = check_contents,
    .bytes = bytes,
    .trace =
        [](const Arguments& a, ptx::Target target) {
          std::vector<Traced> traced;
          traced.push_back(plan_of(DeviceProperties{}, a).trace(target));
          return traced;
        },
    .fill = fill_cache,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& reshape_and_cache_operator() { return kReshapeAndCache; }

}  // namespace tilewright

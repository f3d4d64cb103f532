// SPDX-License-Identifier: Apache-2.0
// The checks of what qk_norm_rope does with values: a copy, and the cache write.
#include "kernels/qk_norm_rope/qk_norm_rope.h"
#include "kernels/reshape_and_cache/cache_codes.h"
#include "kernels/reshape_and_cache/cache_pages.h"

#include <array>

namespace tilewright {
namespace {

void check_presence(const QkTensors& t, const rows::Caller& caller) {
  if (t.v && t.slot_mapping && t.key_cache && t.value_cache) return;
  const std::pair<const std::optional<View>*, const char*> all[] = {
      {&t.v, "v"},
      {&t.slot_mapping, "slot_mapping"},
      {&t.key_cache, "key_cache"},
      {&t.value_cache, "value_cache"}};
  for (const auto& [view, which] : all) {
    if (!*view) {
      caller.refuse(std::string(which) +
                    " is missing; v, slot_mapping, key_cache and value_cache come together");
    }
  }
}

void check_like_k(const QkTensors& t, const rows::Caller& caller) {
  const View& v = *t.v;
  const bool like_k = v.rank == 3 && v.type == t.k.type && v.shape[0] == t.k.shape[0] &&
                      v.shape[1] == t.k.shape[1] && v.shape[2] == t.k.shape[2];
  if (!like_k) {
    caller.refuse("v is " + to_string(v) + " and k " + to_string(t.k) +
                  "; types and shapes must be equal");
  }
  if (v.shape[2] > 1 && v.stride[2] != 1)
    caller.refuse("v is " + to_string(v) + "; its last stride must be 1");
}

void check_copy(const QkTensors& t, const rows::Caller& caller) {
  const View &v = *t.v, &out = *t.v_out;
  const bool like_v = out.rank == 3 && out.type == v.type && out.shape[0] == v.shape[0] &&
                      out.shape[1] == v.shape[1] && out.shape[2] == v.shape[2];
  if (!like_v) {
    caller.refuse("v_out is " + to_string(out) + " and v " + to_string(v) +
                  "; types and shapes must be equal");
  }
  if (out.shape[2] > 1 && out.stride[2] != 1)
    caller.refuse("v_out is " + to_string(out) + "; its last stride must be 1");
  rows::check_distinct(out, "v_out", caller);
  const std::pair<const View*, const char*> others[] = {
      {&t.q, "q"}, {&t.k, "k"}, {&t.q_out, "q_out"}, {&t.k_out, "k_out"}, {&v, "v"}};
  for (const auto& [view, view_name] : others)
    rows::check_apart(*view, view_name, out, "v_out", caller);
  const std::pair<const std::optional<View>*, const char*> optionals[] = {
      {&t.q_weight, "q_weight"},      {&t.k_weight, "k_weight"}, {&t.positions, "positions"},
      {&t.cos_sin, "cos_sin"},        {&t.inv_freq, "inv_freq"}, {&t.slot_mapping, "slot_mapping"},
      {&t.k_scale, "k_scale"},        {&t.v_scale, "v_scale"},   {&t.key_cache, "key_cache"},
      {&t.value_cache, "value_cache"}};
  for (const auto& [view, view_name] : optionals) {
    if (*view) rows::check_apart(**view, view_name, out, "v_out", caller);
  }
}

void check_slots(const QkTensors& t, const rows::Caller& caller) {
  if (!rows::is_index_type(t.slot_mapping->type)) {
    caller.refuse("slot_mapping has type " + std::string(name(t.slot_mapping->type)) +
                  "; it must be s32 or s64");
  }
  rows::check_vector(*t.slot_mapping, "slot_mapping", t.k.shape[0], caller);
}

void check_cache(const View& cache, const char* which, const QkTensors& t,
                 const rows::Caller& caller) {
  if (cache.shape[2] != t.k.shape[1] || cache.shape[4] != t.k.shape[2]) {
    caller.refuse(std::string(which) + " has " + std::to_string(cache.shape[2]) + " heads of " +
                  std::to_string(cache.shape[4]) + " elements and k is " + to_string(t.k) +
                  "; they must be equal");
  }
  const std::pair<const View*, const char*> others[] = {
      {&t.q, "q"},         {&t.k, "k"},         {&t.q_out, "q_out"},
      {&t.k_out, "k_out"}, {&t.v.value(), "v"}, {&t.slot_mapping.value(), "slot_mapping"}};
  for (const auto& [view, view_name] : others)
    rows::check_apart(*view, view_name, cache, which, caller);
  const std::pair<const std::optional<View>*, const char*> optionals[] = {
      {&t.q_weight, "q_weight"}, {&t.k_weight, "k_weight"}, {&t.positions, "positions"},
      {&t.cos_sin, "cos_sin"},   {&t.inv_freq, "inv_freq"}, {&t.k_scale, "k_scale"},
      {&t.v_scale, "v_scale"}};
  for (const auto& [view, view_name] : optionals) {
    if (*view) rows::check_apart(**view, view_name, cache, which, caller);
  }
}

void check_cache_write(QkTensors& t, CacheLayout layout, const rows::Caller& caller) {
  check_presence(t, caller);
  if (layout == CacheLayout::v0) caller.refuse("cache_layout=v0; it must be nhd or hnd");
  check_slots(t, caller);
  t.key_cache = paged(*t.key_cache, layout, "key_cache", caller);
  t.value_cache = paged(*t.value_cache, layout, "value_cache", caller);
  check_same_pages(*t.key_cache, *t.value_cache, caller);
  check_cache_codes(t.k, *t.key_cache, t.k_scale, {"k", "key_cache", "k_scale"}, caller);
  check_cache_codes(*t.v, *t.value_cache, t.v_scale, {"v", "value_cache", "v_scale"}, caller);
  check_cache(*t.key_cache, "key_cache", t, caller);
  check_cache(*t.value_cache, "value_cache", t, caller);
  if (overlap(*t.key_cache, *t.value_cache))
    caller.refuse("key_cache and value_cache overlap; they must be apart");
}

}  // namespace

void check_values(QkTensors& t, CacheLayout layout, const rows::Caller& caller) {
  const bool has_cache = t.slot_mapping || t.key_cache || t.value_cache;
  if (t.v_out && !t.v) caller.refuse("v_out is given without v; it takes a copy of v");
  if (t.v && !t.v_out && !has_cache) {
    caller.refuse(
        "v is given without v_out and without a cache; give v_out, or slot_mapping, key_cache and "
        "value_cache");
  }
  if (t.v) check_like_k(t, caller);
  if (has_cache) {
    check_cache_write(t, layout, caller);
  } else {
    if (t.k_scale) caller.refuse("k_scale is given without a cache");
    if (t.v_scale) caller.refuse("v_scale is given without a cache");
  }
  if (t.v_out) check_copy(t, caller);
}

}  // namespace tilewright

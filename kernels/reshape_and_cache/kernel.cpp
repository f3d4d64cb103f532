// SPDX-License-Identifier: Apache-2.0
// The device side of reshape_and_cache: a thread moves one access of a token's keys or values.
#include "kernels/reshape_and_cache/reshape_and_cache.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using Tensors = CacheWrite<Tensor>;

class CacheWriteKernel {
 public:
  CacheWriteKernel(const CacheWriteConfig& config, Tensors tensors)
      : c_(config), t_(std::move(tensors)) {}

  void run(const Value& first_value_block) const {
    Value block = block_idx().x;
    if_(block < first_value_block, [&] {
      move(block, c_.parts[0], t_.key, t_.key_cache, t_.k_scale, true);
    }).else_([&] {
      move(block - first_value_block, c_.parts[1], t_.value, t_.value_cache, t_.v_scale, false);
    });
  }

 private:
  void move(const Value& block, const CachePart& part, const Tensor& in, const Tensor& cache,
            const std::optional<Tensor>& scale, bool counts) const {
    Type index = c_.wide_index ? s64 : s32;
    Value id = block.to(index) * c_.threads + linear_thread_idx().to(index);
    Value token = id / part.accesses();
    Value access = (id % part.accesses()).to(s32);
    Value head = access / (part.d / part.vector_elems);
    Value column = access % (part.d / part.vector_elems) * part.vector_elems;
    if_(token < to_value(t_.slot_mapping.shape()[0].value()).to(index), [&] {
      Value slot = t_.slot_mapping(token);
      Fragment elements = load(in(token, head, column), part.vector_elems);
      if (part.converts) elements = converted(elements, head, scale, cache.type());
      CacheSlot place = cache_slot(cache, slot);
      if_(place.exists, [&] {
        int inner = static_cast<int>(cache.shape()[4].value().value());
        store(
            cache.element(coord({place.page, place.offset, head, column / inner, column % inner})),
            elements);
      });
      if (counts && t_.skipped) {
        if_(place.beyond && access == 0, [&] { red_add((*t_.skipped)(0), 1); });
      }
    });
  }

  static Fragment converted(const Fragment& elements, const Value& head,
                            const std::optional<Tensor>& scale, Type type) {
    Fragment wide = elements.to(f32);
    if (scale) {
      bool per_head = scale->shape()[0].value().value() > 1;
      Value divisor = (*scale)(per_head ? head : constant(s32, 0));
      wide = map(wide, [&](const Value& x) { return x / divisor; });
    }
    return wide.to(type);
  }

  const CacheWriteConfig& c_;
  Tensors t_;
};

}  // namespace

Traced ReshapeAndCachePlan::trace(ptx::Target target) const {
  TraceOptions options{.name = "reshape_and_cache_" + std::string(name(tensors.key.type)) + "_" +
                               std::string(name(tensors.key_cache.type)),
                       .target = target,
                       .block = {config.threads, 1, 1}};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& key, const Tensor& value, const Tensor& slots,
                     const Maybe& k_scale, const Maybe& v_scale, const Tensor& key_cache,
                     const Tensor& value_cache, const Maybe& skipped,
                     const Value& first_value_block) {
    CacheWriteKernel(config, {key, value, slots, k_scale, v_scale, key_cache, value_cache, skipped})
        .run(first_value_block);
  };
  return tilewright::trace(options, body, args.key, args.value, args.slot_mapping, args.k_scale,
                           args.v_scale, args.key_cache, args.value_cache, args.skipped,
                           ScalarArg{s32, {}});
}

}  // namespace tilewright

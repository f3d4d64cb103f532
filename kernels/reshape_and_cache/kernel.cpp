// SPDX-License-Identifier: Apache-2.0
// The device side of reshape_and_cache: a thread moves accesses of tokens' keys or values.
#include "kernels/reshape_and_cache/cache_codes.h"
#include "kernels/reshape_and_cache/reshape_and_cache.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/thread.h"

#include <vector>

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
  /// A thread's access of a token's heads.
  struct Access {
    Value token, number, head, column;
    Value exists;
    Value slot;
    Fragment elements;
  };

  void move(const Value& block, const CachePart& part, const Tensor& in, const Tensor& cache,
            const std::optional<Tensor>& scale, bool counts) const {
    std::vector<Access> accesses;  // all on their way before the first is used
    accesses.reserve(static_cast<std::size_t>(c_.turns));
    for (int turn = 0; turn < c_.turns; ++turn)
      accesses.push_back(access_of(block, part, in, turn));
    for (const Access& a : accesses) {
      Fragment elements = part.converts
                              ? cache_codes({a.elements}, scale, a.head, cache.type()).front()
                              : a.elements;
      const CacheSlot place = cache_slot(cache, a.slot);
      const int inner = static_cast<int>(cache.shape()[4].value().value());
      store_if(a.exists && place.exists,
               cache.element(
                   coord({place.page, place.offset, a.head, a.column / inner, a.column % inner})),
               elements);
      if (counts && t_.skipped) {
        if_(a.exists && place.beyond && a.number == 0, [&] { red_add((*t_.skipped)(0), 1); });
      }
    }
  }

  Access access_of(const Value& block, const CachePart& part, const Tensor& in, int turn) const {
    Type index = c_.wide_index ? s64 : s32;
    Value id = block.to(index) * (c_.threads * c_.turns) + linear_thread_idx().to(index) +
               turn * c_.threads;
    Value token = id / part.accesses();
    Value number = (id % part.accesses()).to(s32);
    Value head = number / (part.d / part.vector_elems);
    Value column = number % (part.d / part.vector_elems) * part.vector_elems;
    Value exists = token < to_value(t_.slot_mapping.shape()[0].value()).to(index);
    Value slot = load_if(exists, t_.slot_mapping(token), 1)[0].get();
    Fragment elements = load_if(exists, in(token, head, column), part.vector_elems);
    return {token, number, head, column, exists, slot, elements};
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

// SPDX-License-Identifier: Apache-2.0
// Loads and prefetches of the same elements, traced.
#include "kernels/kda/access.h"

#include "tilewright/cache_policy.h"
#include "tilewright/control.h"

namespace tilewright::kda {
namespace {

constexpr int kSectorBits = 32 * 8;  // what a prefetch brings at least

}  // namespace

Fragment access_if(Access access, const Value& wanted, const Element& first, int count) {
  if (access == Access::load) return load_if(wanted, first, count);
  const Type type = first.tensor().type();
  Tensor run = first.tensor().at_offset(first.offset(), Layout(Shape{count}));
  if_(wanted, [&] {
    for (int i = 0; i < count; i += kSectorBits / bits(type))
      prefetch(run(i));
  });
  Fragment none(type, count);
  none.fill(0.0f);
  return none;
}

}  // namespace tilewright::kda

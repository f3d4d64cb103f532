// SPDX-License-Identifier: Apache-2.0
// What operators on rows share: checks of their arguments, access widths, error bounds, launching.
#pragma once

#include "tilewright/cache.h"
#include "tilewright/compile.h"
#include "tilewright/device.h"
#include "tilewright/error.h"
#include "tilewright/kernel.h"
#include "tilewright/trace.h"
#include "tilewright/view.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright::rows {

/// The operator that checks, and the line of its caller.
struct Caller {
  std::string_view op;
  SourceLoc at;
  std::string_view scope = {};  ///< of what is checked, if that is a part: behind messages
  /// Throws Error(user) "OP: what (scope)".
  [[noreturn]] void refuse(const std::string& what) const;
};

bool is_real_type(Type type);   ///< bf16, f16, f32
bool is_index_type(Type type);  ///< s32, s64
std::int64_t ceil_div(std::int64_t a, std::int64_t b);

/// [..., H] as [T, H]. Refuses a last stride other than 1, and outer modes that are not one stride
/// apart.
View folded(const View& view, std::string_view which, const Caller& caller);
/// As folded(), but outer modes may be two strides apart: those stay [A, B, H].
View folded_in_two(const View& view, std::string_view which, const Caller& caller);
/// Of a folded view.
std::int64_t row_count(const View& rows);
std::int64_t row_elems(const View& rows);
/// The view with elements of as many bits, 8 to 64, and no other meaning.
View as_bits(const View& view);
/// Refuses a view whose elements are not one after another: "w is ...; it must be NAME".
void check_vector(const View& view, std::string_view which, std::int64_t elems,
                  const Caller& caller);
/// The shortest text that reads back as the same number.
std::string number_text(double value);

void check_real(const View& view, std::string_view which, const Caller& caller);
/// Refuses another type: "WHICH has type X; it must be Y".
void check_type(const View& view, std::string_view which, Type type, const Caller& caller);
/// Refuses a type other than `like`'s and f32. `owner` is like's tensor.
void check_like_or_f32(const View& view, std::string_view which, Type like, std::string_view owner,
                       const Caller& caller);
/// Refuses an eps that is not finite and at least 0, and a weight bias that is not finite.
void check_norm_numbers(float eps, float weight_bias, const Caller& caller);
/// Refuses a view whose own elements overlap.
void check_distinct(const View& view, std::string_view which, const Caller& caller);
void check_apart(const View& a, std::string_view a_name, const View& b, std::string_view b_name,
                 const Caller& caller);

/// The most elements, a power of two, whose 16-byte accesses of `lead` divide every offset of the
/// views: addresses, strides of outer modes, extents of the last mode. A wider type splits its
/// accesses.
int common_vector(Type lead, std::span<const View> views);

/// Half a unit in the last place relative to the value, and half the smallest subnormal number.
double half_ulp(Type type);
double half_tiniest(Type type);

/// Whether this thread wants dependent launches, and the device takes this one as such.
bool is_dependent(const Device& device, const LaunchConfig& launch);
/// Before anything else the kernel waits for its predecessor. Its own successor may begin at once,
/// as it waits in turn.
void wait_for_predecessor(Traced& traced);

/// The plan's kernel from the cache, checked once for many launches.
template <class Plan>
PreparedLaunch prepare(const Device& device, const Plan& plan, SourceLoc at) {
  const bool dependent = is_dependent(device, plan.launch);
  Kernel kernel = KernelCache::global().get(
      device, dependent ? plan.key() + " dependent" : plan.key(),
      [&](ptx::LineInfo info) {
        Traced traced = plan.trace(device.target());
        if (dependent) wait_for_predecessor(traced);
        return source_of(std::move(traced), info);
      },
      {}, at);
  LaunchConfig launch = plan.launch;
  launch.dependent = launch.dependent || dependent;
  return kernel.prepare(launch, plan.parameters(), at);
}

}  // namespace tilewright::rows

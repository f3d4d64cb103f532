// SPDX-License-Identifier: Apache-2.0
// Dependent launches as PTX; mistakes_test.cpp has what older targets refuse.
#include "lang/trace_fixture.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

TEST(Dependent, SpellsItsTwoHalves) {
  auto kernel = [](const Tensor& x) {
    grid_dependency_launch();
    grid_dependency_wait();
    x(thread_idx().x) = 1;
  };
  test::expect_ptx("grid_dependency", {90, '\0'}, kernel, test::vector_arg(f32, 128));
}

}  // namespace
}  // namespace tilewright

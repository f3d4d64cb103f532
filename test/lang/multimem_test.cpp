// SPDX-License-Identifier: Apache-2.0
// Multicast memory as PTX, and what is refused.
#include "tilewright/multimem.h"

#include "lang/trace_fixture.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(Multimem, SpellsLoadsStoresAndReductions) {
  auto kernel = [](const Tensor& words, const Tensor& reals, const Tensor& halves) {
    Value sum = multimem_load(Reduction::add, words(0));
    multimem_red(Reduction::max, words(1), sum, {Scope::gpu, Order::release});
    multimem_red(Reduction::xor_, words(2), 7u);
    multimem_store(words(3), sum, {.order = Order::release});
    Fragment four = multimem_load(Reduction::add, reals(0), 4, {.order = Order::acquire});
    multimem_store(reals(0), four);
    multimem_red(Reduction::add, reals(4), four.part(0, 2));
    Fragment eight = multimem_load(Reduction::min, halves(0), 8);
    multimem_red(Reduction::add, halves(8), eight);
    multimem_store(halves(16), eight.part(0, 2));
  };
  expect_ptx("multimem", {90, '\0'}, kernel, vector_arg(u32, 64), vector_arg(f32, 64),
             vector_arg(bf16, 64));
}

TEST(Multimem, RefusesWhatTheHardwareDoesNotHave) {
  auto real = [](const Tensor& x) { multimem_load(Reduction::min, x(0)); };
  EXPECT_EQ(error_of(real, vector_arg(f32, 1)),
            "multimem_load: not defined for one f32; it takes integers of 32 or 64 bits");
  auto half = [](const Tensor& x) { multimem_red(Reduction::add, x(0), 1); };
  EXPECT_EQ(error_of(half, vector_arg(f16, 1)),
            "multimem_red: not defined for one f16; it takes integers of 32 or 64 bits, f16, bf16, "
            "f32 and f64, of f16 and bf16 several at once");
  auto byte = [](const Tensor& x) { multimem_store(x(0), 1); };
  EXPECT_EQ(error_of(byte, vector_arg(u8, 1)),
            "multimem_store: not defined for one u8; it takes types of 32 or 64 bits");
  auto three = [](const Tensor& x) { multimem_load(Reduction::add, x(0), 3); };
  EXPECT_EQ(error_of(three, vector_arg(f32, 4)),
            "multimem_load: 3 elements of f32; it takes 2, 4 or 8 f16 or bf16, and 2 or 4 f32 to "
            "add or store");
  auto bits = [](const Tensor& x) { multimem_load(Reduction::or_, x(0), 4); };
  EXPECT_EQ(error_of(bits, vector_arg(f32, 4)),
            "multimem_load: several elements at once are added, or their least or greatest taken");
  auto odd = [](const Tensor& x) { multimem_load(Reduction::add, x(1), 2); };
  EXPECT_EQ(error_of(odd, vector_arg(f32, 4)),
            "multimem_load: 8 bytes at an address known to be aligned to 4; take fewer elements at "
            "a time, or give the tensor its alignment");
}

TEST(Multimem, RefusesOtherMemoryOrdersAndTypes) {
  auto order = [](const Tensor& x) {
    multimem_red(Reduction::add, x(0), 1u, {.order = Order::acquire});
  };
  EXPECT_EQ(error_of(order, vector_arg(u32, 1)),
            "multimem_red: the order must be Order::relaxed or Order::release");
  auto space = [] { multimem_load(Reduction::add, shared(u32, Layout(Shape{4}))(0)); };
  EXPECT_EQ(error_of(space),
            "multimem_load: the element is in shared memory; a multicast address is one of global "
            "memory");
  auto type = [](const Tensor& x) { multimem_store(x(0), Fragment(f16, 4)); };
  EXPECT_EQ(error_of(type, vector_arg(f32, 4)),
            "multimem_store: the fragment has type f16 and the tensor f32; convert with .to()");
}

}  // namespace
}  // namespace tilewright

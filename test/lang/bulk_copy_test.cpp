// SPDX-License-Identifier: Apache-2.0
// Bulk copies as PTX, and the sizes and alignments that are refused.
#include "tilewright/bulk_copy.h"

#include "lang/trace_fixture.h"
#include "tilewright/cluster.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

Tensor tile(Type type = f32) { return shared(type, Layout(Shape{Int(512)})); }

TEST(BulkCopy, SpellsEachCopy) {
  auto kernel = [](const Tensor& x, const Tensor& size) {
    Tensor sX = tile();
    Mbarriers full;
    bulk_load(sX(0), x(0), 2048, full[0]);
    bulk_load_multicast(sX(0), x(0), size(0).load().assume({16, 16, 2048}), full[0], 0b11);
    bulk_send(peer(sX, 1)(256), sX(0), 1024, full[0].peer(1));
    bulk_store(x(4), sX(4), 16);
    bulk_add(x(0), sX(0), 512);
    bulk_min(size(0), tile(u32)(0), 16);
    bulk_xor(x(0), sX(0), 16);
    bulk_commit();
    bulk_wait_read(1);
    bulk_wait();
    bulk_prefetch(x(0), 2048);
  };
  expect_ptx("bulk_copy", {90, '\0'}, kernel, vector_arg(f32, 512), vector_arg(u32, 1));
}

TEST(BulkCopy, RefusesSizesThatAreNoMultipleOf16) {
  auto load = [](const Tensor& x) { bulk_load(tile()(0), x(0), 24, Mbarriers()[0]); };
  EXPECT_EQ(error_of(load, vector_arg(f32, 512)),
            "bulk_load: 24 bytes; it must be a positive multiple of 16");
  auto unknown = [](const Tensor& x, const Tensor& n) {
    bulk_store(x(0), tile()(0), n(0).load() * 4);
  };
  EXPECT_EQ(error_of(unknown, vector_arg(f32, 512), vector_arg(s32, 1)),
            "bulk_store: a size known to be a multiple of 4 bytes; it must be a positive multiple "
            "of 16, by assume({.divisor = 16}) where you know it");
  auto real = [](const Tensor& x) { bulk_prefetch(x(0), x(0)); };
  EXPECT_EQ(error_of(real, vector_arg(f32, 512)),
            "bulk_prefetch: the size has type f32; it must be an integer of 32 or 64 bits");
}

TEST(BulkCopy, RefusesMoreBytesThanTheTensorInSharedMemoryHas) {
  auto load = [](const Tensor& x) { bulk_load(tile()(256), x(0), 1040, Mbarriers()[0]); };
  EXPECT_EQ(error_of(load, vector_arg(f32, 512)),
            "bulk_load: 1040 bytes, and the destination has 1024 from its element 256 on; copy "
            "fewer, or allocate more");
  auto store = [](const Tensor& x) { bulk_store(x(0), tile()((thread_idx().x + 4) * 4), 2048); };
  EXPECT_EQ(error_of(store, vector_arg(f32, 512)),
            "bulk_store: 2048 bytes, and the source has 1984 from its element 16 on; copy fewer, "
            "or allocate more");
}

TEST(BulkCopy, RefusesAddressesThatAreNotAlignedTo16) {
  auto source = [](const Tensor& x) { bulk_load(tile()(0), x(2), 16, Mbarriers()[0]); };
  EXPECT_EQ(error_of(source, vector_arg(f32, 512)),
            "bulk_load: the source is known to be aligned to 8 bytes; it must be to 16: give the "
            "tensor its alignment, or copy whole multiples of 16 bytes");
}

TEST(BulkCopy, RefusesTheWrongSpaces) {
  auto backwards = [](const Tensor& x) { bulk_load(x(0), tile()(0), 16, Mbarriers()[0]); };
  EXPECT_EQ(error_of(backwards, vector_arg(f32, 512)),
            "bulk_load: from shared to global memory; it copies from global to shared memory");
  auto own = [](const Tensor& x) {
    Tensor sX = tile();
    bulk_send(peer(sX, 0)(0), sX(0), 16, Mbarriers()[0]);
    x(0) = 0;
  };
  EXPECT_EQ(error_of(own, vector_arg(f32, 512)),
            "bulk_send: the mbarrier is this block's; take the receiver's by peer()");
}

TEST(BulkCopy, RefusesTypesThatItCannotAdd) {
  auto bytes = [](const Tensor& x) { bulk_add(x(0), tile(u8)(0), 16); };
  EXPECT_EQ(error_of(bytes, vector_arg(u8, 512)),
            "bulk_add: not defined for u8; it takes integers of 32 or 64 bits, f16, bf16, f32 and "
            "f64");
  auto least = [](const Tensor& x) { bulk_min(x(0), tile(f32)(0), 16); };
  EXPECT_EQ(error_of(least, vector_arg(f32, 512)),
            "bulk_min: not defined for f32; it takes integers of 32 or 64 bits, f16 and bf16");
  auto mixed = [](const Tensor& x) { bulk_add(x(0), tile(f16)(0), 16); };
  EXPECT_EQ(error_of(mixed, vector_arg(f32, 512)),
            "bulk_add: the source has type f16 and the destination f32; they must be the same");
}

TEST(BulkCopy, NeedsHopper) {
  TraceOptions ampere{.name = "old", .target = {80, '\0'}, .block = {32, 1, 1}};
  auto kernel = [](const Tensor& x) { bulk_prefetch(x(0), 16); };
  try {
    trace(ampere, kernel, vector_arg(f32, 4));
    FAIL() << "sm_80 has no bulk copies";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(error.message().find("needs sm_90 or newer"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace tilewright

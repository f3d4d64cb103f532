// SPDX-License-Identifier: Apache-2.0
// Tests of what the kernel cache finds where, and of keys that miss something.
#include "tilewright/cache.h"

#include "runtime/disk_cache.h"
#include "runtime/fake/cache_fixture.h"

#include <thread>

namespace tilewright::test {
namespace {

class KernelCacheTest : public CacheTest {};

TEST_F(KernelCacheTest, FindsAKernelInTheDevicesMemory) {
  KernelCache cache({.directory = path()});
  Device device = Device::open("cuda:0");
  Kernel first = get(cache, device);
  Kernel second = get(cache, device);
  EXPECT_EQ(&first.loaded(), &second.loaded());
  EXPECT_EQ(cache.counters().memory_hits, 1);
  EXPECT_EQ(traces_, 1);
}

TEST_F(KernelCacheTest, FindsAKernelOnDiskWithoutATrace) {
  CacheOptions unverified{.directory = path()};
  get_afresh("scale v1", &unverified);
  Kernel kernel = get_afresh("scale v1", &unverified);
  EXPECT_EQ(counters_.front_hits, 1);
  EXPECT_EQ(traces_, 1);
  EXPECT_EQ(assembler_.runs(), 1);
  EXPECT_EQ(kernel.name(), "scale");
  EXPECT_EQ(kernel.metadata(), "recipes");
  EXPECT_EQ(kernel.assembled().assembler, "ptxas 13.0.88");
  EXPECT_EQ(kernel.assembled().bytes.size(), 4u);
}

TEST_F(KernelCacheTest, AssemblesTheSamePtxOnceForTwoFrontKeys) {
  get_afresh("scale v1");
  get_afresh("scale v2");
  EXPECT_EQ(counters_.ptx_hits, 1);
  EXPECT_EQ(assembler_.runs(), 1);
}

TEST_F(KernelCacheTest, IgnoresSourceLinesUnlessTheyAreKept) {
  get_afresh("a");
  ptx_ += ".file 1 \"k.cpp\"\n\t.loc 1 7 0\n";
  get_afresh("b");
  EXPECT_EQ(assembler_.runs(), 1);
  KernelCache cache(options());
  get(cache, Device::open("cuda:0"), "c", {.line_info = true});
  EXPECT_EQ(assembler_.runs(), 2);
}

TEST_F(KernelCacheTest, TracesEveryHitAgainToVerifyIt) {
  get_afresh();
  get_afresh();
  EXPECT_EQ(counters_.verified, 1);
  EXPECT_EQ(traces_, 2);
}

TEST_F(KernelCacheTest, SaysThatAFrontKeyMissesSomething) {
  get_afresh();
  ptx_ += "// changed\n";
  EXPECT_EQ(error_of([&] { get_afresh(); }),
            "kernel cache: the front key 'scale v1' now leads to another PTX than when it was "
            "stored; the key misses something that the trace depends on, or the operator's version "
            "was not raised");
}

TEST_F(KernelCacheTest, SaysSoOfAHitInMemoryToo) {
  KernelCache cache(options());
  Device device = Device::open("cuda:0");
  get(cache, device);
  ptx_ += "// changed\n";
  EXPECT_NE(error_of([&] { get(cache, device); }), "");
}

TEST_F(KernelCacheTest, KeepsKernelsOfDifferentOptionsApart) {
  KernelCache cache(options());
  Device device = Device::open("cuda:0");
  Kernel plain = get(cache, device);
  Kernel slow = get(cache, device, "scale v1", {.opt_level = 0});
  EXPECT_NE(&plain.loaded(), &slow.loaded());
  EXPECT_EQ(assembler_.runs(), 2);
}

TEST_F(KernelCacheTest, MakesAKernelOnceForManyThreads) {
  KernelCache cache({.directory = path()});
  Device device = Device::open("cuda:0");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { get(cache, device); });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(traces_, 1);
  EXPECT_EQ(cache.counters().memory_hits, 7);
}

TEST_F(KernelCacheTest, TriesAgainAfterAFailure) {
  KernelCache cache(options());
  Device device = Device::open("cuda:0");
  assembler_.fail("ptxas fatal   : no\n");
  EXPECT_EQ(error_of([&] { get(cache, device); }), "assemble: ptxas 13.0.88: ptxas fatal   : no");
  std::remove(assembler_.file("fail").c_str());
  EXPECT_EQ(get(cache, device).name(), "scale");
}

TEST_F(KernelCacheTest, LetsTheDriverAssembleWhereNothingElseDoes) {
  setenv("TILEWRIGHT_PTXAS", "/bin/true", 1);
  Kernel kernel = get_afresh();
  EXPECT_EQ(kernel.assembled().assembler, "driver 13.0");
  EXPECT_EQ(status().modules, 1);
}

TEST_F(KernelCacheTest, LeavesPtxToTheDriverThatIsTooNewForTheAssembler) {
  ptx_ = ".version 9.1\n.target sm_90a\n";
  EXPECT_EQ(get_afresh().assembled().assembler, "driver 13.0");
}

TEST_F(KernelCacheTest, RefusesAnAssemblerThatWasNamedAndCannotBeUsed) {
  KernelCache cache(options());
  Device device = Device::open("cuda:0");
  EXPECT_EQ(error_of([&] { get(cache, device, "scale v1", {.assembler = "nvptxcompiler"}); }),
            "assemble: no assembler can be used (nvptxcompiler: switched off by "
            "TILEWRIGHT_NVPTXCOMPILER; ptxas: not the one that was asked for); pip install "
            "nvidia-cuda-nvcc, or run the kernel on an emulated device");
}

TEST_F(KernelCacheTest, AssemblesWithoutADevice) {
  KernelCache cache({.directory = path()});
  auto trace = [&](ptx::LineInfo) { return source(); };
  EXPECT_EQ(cache.assemble({90, 'a'}, "scale v1", trace).bytes.size(), 4u);
  EXPECT_EQ(cache.assemble({90, 'a'}, "scale v1", trace).bytes.size(), 4u);
  EXPECT_EQ(traces_, 1);
  get(cache, Device::open("cuda:0"));
  EXPECT_EQ(traces_, 1) << "a device finds what was assembled ahead of time";
}

TEST_F(KernelCacheTest, PassesOverCodeOfANewerAssemblerThanTheDriver) {
  detail::DiskCache disk(options());
  detail::Hash key{1, 2};
  Assembled code{.bytes = {}, .assembler = "ptxas 13.0.88", .log = {}, .resources = {}};
  disk.store_code(key, code, {.target = {90, 'a'}, .entry = "scale"});
  EXPECT_TRUE(disk.find_code(key, 13000));
  EXPECT_FALSE(disk.find_code(key, 12080));
}

TEST_F(KernelCacheTest, UnloadsItsKernelsWithTheDevice) {
  KernelCache cache(options());
  get(cache, Device::open("cuda:0"));
  EXPECT_EQ(status().libraries, 0);
  EXPECT_EQ(status().primary_contexts, 0);
}

TEST_F(KernelCacheTest, ListsVerifiesAndClearsItsEntries) {
  get_afresh("a");
  ptx_ += "// b\n";
  get_afresh("b");
  KernelCache cache(options());
  std::vector<CacheEntry> entries = cache.list();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].entry, "scale");
  EXPECT_EQ(entries[0].target, "sm_90a");
  EXPECT_EQ(entries[0].problem, "");
  EXPECT_GT(entries[0].size_bytes, 4);
  EXPECT_EQ(cache.verify().size(), 2u);
  EXPECT_EQ(cache.clear(), 2);
  EXPECT_TRUE(cache.list().empty());
}

TEST_F(KernelCacheTest, TakesItsDirectoryFromTheEnvironment) {
  std::string before = detail::environment("TILEWRIGHT_CACHE_DIR");
  setenv("TILEWRIGHT_CACHE_DIR", "/a", 1);
  setenv("XDG_CACHE_HOME", "/b", 1);
  EXPECT_EQ(default_cache_directory(), "/a");
  unsetenv("TILEWRIGHT_CACHE_DIR");
  EXPECT_EQ(default_cache_directory(), "/b/tilewright");
  unsetenv("XDG_CACHE_HOME");
  std::string home = detail::environment("HOME");
  setenv("HOME", "/c", 1);
  EXPECT_EQ(default_cache_directory(), "/c/.cache/tilewright");
  setenv("HOME", home.c_str(), 1);
  setenv("TILEWRIGHT_CACHE_DIR", before.c_str(), 1);
}

}  // namespace
}  // namespace tilewright::test

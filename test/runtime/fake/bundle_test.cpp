// SPDX-License-Identifier: Apache-2.0
// Tests of bundles: what is written is read, damage is refused, and kernels come from them.
#include "tilewright/bundle.h"

#include "runtime/fake/cache_fixture.h"
#include "tilewright/offline_compiler.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

// The header is C: its casts and its functions that are not used here are as they have to be.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wunused-function"
#define TW_BUNDLE_API static
#define TILEWRIGHT_BUNDLE_IMPLEMENTATION
#include "tilewright_bundle.h"
#pragma GCC diagnostic pop

namespace tilewright::test {
namespace {

class BundleTest : public CacheTest {
 protected:
  std::string file(const char* name = "a.twb") const { return directory_.file(name); }

  BundleKernel kernel(const std::string& key, const std::string& code) const {
    BundleKernel made;
    made.front_key = key;
    made.entry = "scale";
    made.target = {90, 'a'};
    made.options = canonical_text({});
    made.recipe = "address 0\n";
    made.problem = "scale N=4";
    made.assembled.assembler = "ptxas 13.0.88";
    made.assembled.resources = {{.entry = "scale", .registers = 24, .static_smem_bytes = 128}};
    for (char c : code)
      made.assembled.bytes.push_back(static_cast<std::byte>(c));
    made.launch = {
        .grid = {7, 1, 1}, .block = {128, 1, 1}, .dynamic_smem_bytes = 4096, .cooperative = true};
    made.parameter_bytes = 12;
    return made;
  }
  void write(std::vector<BundleKernel> kernels, const char* name = "a.twb") const {
    write_bundle(file(name), kernels);
  }
  std::string bytes() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// What opening and taking out every kernel says of these bytes.
  std::string problem_of(const std::string& bytes) const {
    std::ofstream(file("changed.twb"), std::ios::binary) << bytes;
    std::string text = error_of([&] {
      Bundle bundle = Bundle::open(file("changed.twb"));
      for (std::int64_t i = 0; i < bundle.size(); ++i)
        bundle.kernel(i);
    });
    std::size_t path = text.find("changed.twb ");
    return path == std::string::npos ? text : text.substr(path + std::strlen("changed.twb "));
  }
};

std::string text_of(const Assembled& assembled) {
  std::string text;
  for (std::byte b : assembled.bytes)
    text += static_cast<char>(b);
  return text;
}

TEST_F(BundleTest, GivesBackWhatWasWritten) {
  write({kernel("scale v1", "machine code"), kernel("add v1", "other")});
  Bundle bundle = Bundle::open(file());
  ASSERT_EQ(bundle.size(), 2);
  std::int64_t index = bundle.find("scale v1", {90, 'a'}, {});
  ASSERT_GE(index, 0);
  BundleKernel read = bundle.kernel(index);
  BundleKernel written = kernel("scale v1", "machine code");
  EXPECT_EQ(read.entry, "scale");
  EXPECT_EQ(read.target, written.target);
  EXPECT_EQ(read.recipe, written.recipe);
  EXPECT_EQ(read.problem, written.problem);
  EXPECT_EQ(read.launch, written.launch);
  EXPECT_EQ(read.parameter_bytes, 12);
  EXPECT_EQ(read.assembled.assembler, "ptxas 13.0.88");
  EXPECT_EQ(text_of(read.assembled), "machine code");
  ASSERT_EQ(read.assembled.resources.size(), 1u);
  EXPECT_EQ(read.assembled.resources[0], written.assembled.resources[0]);
  EXPECT_EQ(bundle.find("scale v2", {90, 'a'}, {}), -1);
  EXPECT_EQ(bundle.find("scale v1", {80, '\0'}, {}), -1);
  EXPECT_EQ(bundle.find("scale v1", {90, 'a'}, {.opt_level = 1}), -1);
}

TEST_F(BundleTest, TheOrderOfKernelsDoesNotChangeTheFile) {
  write({kernel("a", "1"), kernel("b", "2"), kernel("a", "later ones are left out")});
  std::string first = bytes();
  write({kernel("b", "2"), kernel("a", "1")});
  EXPECT_EQ(bytes(), first);
}

TEST_F(BundleTest, RefusesDamagedForeignAndNewerFiles) {
  write({kernel("a", "machine code of one kernel")});
  const std::string good = bytes();
  EXPECT_EQ(problem_of(good), "");
  EXPECT_EQ(problem_of("an ELF file, say"), "is not a bundle");
  EXPECT_EQ(problem_of(""), "is not a bundle");
  EXPECT_EQ(problem_of(good.substr(0, 30)), "is cut short");
  EXPECT_EQ(problem_of(good.substr(0, good.size() - 1)), "is cut short");
  EXPECT_EQ(problem_of(good + "x"), "has bytes after its end");
  std::string newer = good;
  newer[8] = 2;
  EXPECT_EQ(problem_of(newer), "has format 2; this program reads 1");
  std::string index = good;
  index[60] ^= 1;
  EXPECT_EQ(problem_of(index), "is damaged: the checksum of its index does not fit");
  std::string code = good;
  code[good.size() - 1] ^= 1;
  EXPECT_EQ(problem_of(code), "is damaged: the checksum of kernel scale does not fit");
}

TEST_F(BundleTest, NoChangedByteGoesUnnoticed) {
  write({kernel("a", "machine code"), kernel("b", "more of it")});
  const std::string good = bytes();
  // Bytes between the code of two kernels are padding, which nothing reads.
  std::size_t padding = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    bool was_zero = good[i] == 0;
    bool unnoticed = problem_of(changed).empty();
    padding += unnoticed ? 1 : 0;
    EXPECT_TRUE(!unnoticed || was_zero) << "byte " << i;
  }
  EXPECT_LT(padding, 128u);
}

TEST_F(BundleTest, AMissingFileIsAnErrorWithTheSystemsReason) {
  EXPECT_EQ(error_of([&] { Bundle::open("/nowhere/a.twb"); }),
            "bundle: /nowhere/a.twb: No such file or directory");
  EXPECT_NE(error_of([&] { write_bundle("/nowhere/a.twb", {}); }).find("/nowhere/a.twb"),
            std::string::npos);
}

TEST_F(BundleTest, AKernelWithoutCodeIsNotWritten) {
  EXPECT_EQ(error_of([&] { write({kernel("a", "")}); }),
            "write_bundle: scale has no machine code; assemble it first");
}

TEST_F(BundleTest, ACacheTakesKernelsFromItWithoutTraceOrAssembler) {
  write({kernel("scale v1", "from the bundle")});
  KernelCache cache(options());
  cache.add(Bundle::open(file()));
  Kernel found = get(cache, Device::open("cuda:0"));
  EXPECT_EQ(text_of(found.assembled()), "from the bundle");
  EXPECT_EQ(found.metadata(), "address 0\n");
  EXPECT_EQ(traces_, 0);
  EXPECT_EQ(assembler_.runs(), 0);
  EXPECT_EQ(cache.counters().bundle_hits, 1);
  EXPECT_TRUE(cache.compiled().empty());
}

TEST_F(BundleTest, KernelsThatItDoesNotHaveAreCompiledAndReported) {
  write({kernel("scale v1", "from the bundle")});
  KernelCache cache(options());
  cache.add(Bundle::open(file()));
  get(cache, Device::open("cuda:0"), "scale v2");
  EXPECT_EQ(cache.compiled(), std::vector<std::string>{"scale v2"});
}

TEST_F(BundleTest, WhereCompilingIsOffAMissingKernelIsAnError) {
  CacheOptions strict{.directory = path(), .compile = CompileMode::refused};
  EXPECT_EQ(error_of([&] { get_afresh("scale v2", &strict); }),
            "kernel cache: no bundle and no entry on disk has the kernel of 'scale v2' for sm_90a, "
            "and compiling is off; add it to a bundle with 'tilewright compile', or set "
            "TILEWRIGHT_COMPILE=on");
  get_afresh("scale v2");
  EXPECT_EQ(get_afresh("scale v2", &strict).name(), "scale");  // now it is on disk
}

TEST_F(BundleTest, ANewBundleReplacesKernelsThatAreInUse) {
  write({kernel("scale v1", "old"), kernel("add v1", "same")});
  write({kernel("scale v1", "new"), kernel("add v1", "same")}, "b.twb");
  KernelCache cache(options());
  Device device = Device::open("cuda:0");
  cache.add(Bundle::open(file()));
  Kernel same = get(cache, device, "add v1");
  {
    Kernel old = get(cache, device);
    cache.add(Bundle::open(file("b.twb")));
    Kernel replaced = get(cache, device);
    EXPECT_EQ(text_of(replaced.assembled()), "new");
    EXPECT_EQ(text_of(old.assembled()), "old");  // launches of it go on
    EXPECT_EQ(&get(cache, device).loaded(), &replaced.loaded());
    EXPECT_EQ(&get(cache, device, "add v1").loaded(), &same.loaded()) << "equal code stays";
    EXPECT_EQ(status().libraries + status().modules, 3);
  }
  EXPECT_EQ(status().libraries + status().modules, 2) << "what nothing uses is unloaded";
}

TEST_F(BundleTest, LaunchesGoOnWhileBundlesReplaceOneAnother) {
  write({kernel("scale v1", "old")});
  write({kernel("scale v1", "new")}, "b.twb");
  KernelCache cache({.directory = path(), .compile = CompileMode::refused});
  const Device device = Device::open("cuda:0");
  const Bundle bundles[] = {Bundle::open(file()), Bundle::open(file("b.twb"))};
  cache.add(bundles[0]);
  std::atomic<int> launches{0};
  std::atomic<bool> stop{false};
  std::thread server([&] {
    const Stream stream = Stream::default_of(device);
    Parameters parameters;
    parameters.add(std::uint64_t{1}).add(std::int32_t{2});
    while (!stop) {
      const Kernel now = get(cache, device);
      const std::string code = text_of(now.assembled());
      if (code != "old" && code != "new") return;
      now.launch({.grid = {1, 1, 1}, .block = {64, 1, 1}}, parameters, stream);
      ++launches;
    }
  });
  for (int i = 1; i <= 20; ++i) {
    const int before = launches;
    cache.add(bundles[i % 2]);
    for (int wait = 0; wait < 5000 && launches <= before + 1; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(launches, before + 1) << "after bundle " << i;
  }
  stop = true;
  server.join();
  EXPECT_EQ(text_of(get(cache, device).assembled()), "old");
  EXPECT_EQ(status().libraries + status().modules, 1) << "what nothing uses is unloaded";
}

TEST_F(BundleTest, CodeOfAnAssemblerNewerThanTheDriverIsPassedOver) {
  BundleKernel newer = kernel("scale v1", "too new");
  newer.assembled.assembler = "ptxas 99.0.1";
  write({newer});
  KernelCache cache(options());
  cache.add(Bundle::open(file()));
  get(cache, Device::open("cuda:0"));
  EXPECT_EQ(cache.counters().bundle_hits, 0);
  ASSERT_EQ(cache.warnings().size(), 1u);
  EXPECT_EQ(
      cache.warnings()[0],
      "kernel cache: a bundle has scale from ptxas 99.0.1, which is newer than the driver; it "
      "is passed over");
}

TEST_F(BundleTest, AnOfflineDeviceCollectsTheKernelsOfItsLaunches) {
  OfflineCompiler compiler(known_gpu("NVIDIA H200"));
  KernelCache cache(options());
  compiler.set_problem("scale N=4");
  Kernel made = get(cache, compiler.device());
  Stream stream = Stream::default_of(compiler.device());
  Parameters parameters;
  parameters.add(std::uint64_t{1});
  made.launch({.grid = {3, 1, 1}, .block = {64, 1, 1}}, parameters, stream);
  made.launch({.grid = {9, 1, 1}, .block = {64, 1, 1}}, parameters, stream);
  std::vector<BundleKernel> kernels = compiler.kernels();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].front_key, "scale v1");
  EXPECT_EQ(kernels[0].problem, "scale N=4");
  EXPECT_EQ(kernels[0].launch.grid, (Dim3{3, 1, 1}));
  EXPECT_EQ(kernels[0].parameter_bytes, 8);
  EXPECT_EQ(text_of(kernels[0].assembled), "code");
  write_bundle(file(), kernels);
  EXPECT_EQ(Bundle::open(file()).find("scale v1", {90, 'a'}, {}), 0);
}

class BundleInC : public BundleTest {
 protected:
  BundleInC() { set_current(this); }  // any address is a context of the driver that device_ began
  /// Its code ends with a zero, up to which the fake driver reads.
  BundleKernel with_zero() const { return kernel("scale v1", std::string("code") + char{}); }
  /// The only kernel of a bundle that holds `kernel`.
  tw_bundle_kernel only(const BundleKernel& kernel) {
    write({kernel});
    EXPECT_EQ(tw_bundle_open(file().c_str(), &bundle_), TW_BUNDLE_OK) << tw_bundle_message();
    tw_bundle_kernel found{};
    EXPECT_EQ(tw_bundle_find(bundle_, "scale", "sm_90a", &found), TW_BUNDLE_OK);
    return found;
  }
  ~BundleInC() override { tw_bundle_close(bundle_); }
  Device device_ = Device::open("cuda:0");
  tw_bundle* bundle_ = nullptr;
  const std::uint32_t grid_[3] = {5, 1, 1};
};

TEST_F(BundleInC, LaunchesWithTheConfigurationThatWasRecorded) {
  BundleKernel recorded = with_zero();
  recorded.recipe = "address 0\nscalar 1 s32\n";
  recorded.launch = {.grid = {7, 1, 1},
                     .block = {128, 1, 1},
                     .cluster = {2, 1, 1},
                     .dynamic_smem_bytes = 65536,
                     .cooperative = true,
                     .dependent = true};
  tw_bundle_kernel found = only(recorded);
  EXPECT_STREQ(found.front_key, "scale v1");
  tw_bundle_function function;
  ASSERT_EQ(tw_bundle_load(&found, &function), TW_BUNDLE_OK) << tw_bundle_message();
  EXPECT_EQ(status().max_dynamic_smem, 65536);
  unsigned char parameters[12] = {7};
  EXPECT_EQ(tw_bundle_launch(&function, grid_, parameters, 11, nullptr), TW_BUNDLE_ARGUMENT);
  EXPECT_STREQ(tw_bundle_message(),
               "tw_bundle_launch: the kernel takes 12 bytes of parameters, not 11");
  ASSERT_EQ(tw_bundle_launch(&function, grid_, parameters, 12, nullptr), TW_BUNDLE_OK)
      << tw_bundle_message();
  const FakeCudaLaunch& launch = status().last_launch;
  EXPECT_EQ(launch.grid[0], 5U);
  EXPECT_EQ(launch.block[0], 128U);
  EXPECT_EQ(launch.cluster[0], 2U);
  EXPECT_EQ(launch.dynamic_smem_bytes, 65536U);
  EXPECT_NE(launch.cooperative, 0);
  EXPECT_NE(launch.dependent, 0);
  EXPECT_EQ(tw_bundle_unload(&function), TW_BUNDLE_OK);
  EXPECT_EQ(tw_bundle_unload(&function), TW_BUNDLE_ARGUMENT);
  EXPECT_EQ(status().modules, 0);
}

TEST_F(BundleInC, SeveralBundlesServeOneProgram) {
  BundleKernel first = with_zero(), other = kernel("add v1", std::string("more") + char{});
  first.recipe = other.recipe = "address 0\nscalar 1 s32\n";
  other.entry = "add";
  only(first);
  write({other}, "b.twb");
  tw_bundle* second = nullptr;
  ASSERT_EQ(tw_bundle_open(file("b.twb").c_str(), &second), TW_BUNDLE_OK);
  tw_bundle_kernel found[2] = {};
  EXPECT_EQ(tw_bundle_find(second, "scale", "sm_90a", &found[0]), TW_BUNDLE_NOT_FOUND);
  ASSERT_EQ(tw_bundle_find(bundle_, "scale", "sm_90a", &found[0]), TW_BUNDLE_OK);
  ASSERT_EQ(tw_bundle_find(second, "add v1", "", &found[1]), TW_BUNDLE_OK);
  tw_bundle_function functions[2];
  for (int i : {0, 1})
    ASSERT_EQ(tw_bundle_load(&found[i], &functions[i]), TW_BUNDLE_OK) << tw_bundle_message();
  EXPECT_EQ(status().modules, 2);
  for (tw_bundle_function& function : functions)
    EXPECT_EQ(tw_bundle_unload(&function), TW_BUNDLE_OK);
  tw_bundle_close(second);
}

TEST_F(BundleInC, PlacesEachParameterByTheRecipe) {
  BundleKernel recorded = with_zero();
  recorded.recipe = "scalar 0 s32\ntensor_map 1\naddress 2\nscalar 3 bf16\nextent 2.0 s64\n";
  recorded.parameter_bytes = 64 + 128 + 8 + 8 + 8;
  tw_bundle_kernel found = only(recorded);
  tw_bundle_function function;
  ASSERT_EQ(tw_bundle_load(&found, &function), TW_BUNDLE_OK) << tw_bundle_message();
  ASSERT_EQ(function.parameter_count, 5U);
  EXPECT_EQ(std::vector<std::uint32_t>(function.offsets, function.offsets + 5),
            (std::vector<std::uint32_t>{0, 64, 192, 200, 208}));
  tw_bundle_unload(&function);
}

TEST_F(BundleInC, RefusesARecipeThatDoesNotFitTheParameters) {
  BundleKernel recorded = with_zero();
  recorded.recipe = "address 0\naddress 1\n";
  tw_bundle_kernel found = only(recorded);
  tw_bundle_function function;
  EXPECT_EQ(tw_bundle_load(&found, &function), TW_BUNDLE_DAMAGED);
  EXPECT_STREQ(tw_bundle_message(),
               "kernel scale: its recipe does not fit its 12 bytes of parameters");
}

TEST_F(BundleInC, ReportsTheDriversErrors) {
  BundleKernel recorded = with_zero();
  recorded.recipe = "address 0\nscalar 1 s32\n";
  tw_bundle_kernel found = only(recorded);
  tw_bundle_function function;
  fail("cuModuleLoadDataEx", 209);
  EXPECT_EQ(tw_bundle_load(&found, &function), TW_BUNDLE_CUDA);
  EXPECT_NE(std::string(tw_bundle_message()).find("cuModuleLoadDataEx: "), std::string::npos);
  EXPECT_NE(std::string(tw_bundle_message()).find("(209)"), std::string::npos);
}

TEST_F(BundleInC, SaysThatAThreadHasNoContextAndMakesOneCurrent) {
  BundleKernel recorded = with_zero();
  recorded.recipe = "address 0\nscalar 1 s32\n";
  tw_bundle_kernel found = only(recorded);
  tw_bundle_function function;
  set_current(nullptr);
  EXPECT_EQ(tw_bundle_load(&found, &function), TW_BUNDLE_CUDA);
  EXPECT_NE(std::string(tw_bundle_message())
                .find("(201); no context is current on this thread, see tw_bundle_use_gpu"),
            std::string::npos)
      << tw_bundle_message();
  EXPECT_EQ(tw_bundle_use_gpu(0), TW_BUNDLE_OK) << tw_bundle_message();
  EXPECT_EQ(tw_bundle_load(&found, &function), TW_BUNDLE_OK) << tw_bundle_message();
  tw_bundle_unload(&function);
}

TEST_F(BundleTest, AnUnknownGpuIsAnErrorThatListsTheKnownOnes) {
  EXPECT_EQ(error_of([] { known_gpu("H2000"); }),
            "no GPU is known as 'H2000'; known are NVIDIA A100-SXM4-80GB, NVIDIA H100 80GB HBM3, "
            "NVIDIA H200; on a machine with one take its properties from cuda:N");
}

}  // namespace
}  // namespace tilewright::test

// SPDX-License-Identifier: Apache-2.0
// Tests of loading and launching kernels on the fake CUDA driver.
#include "runtime/fake/fake_driver.h"
#include "tilewright/compile.h"
#include "tilewright/kernel.h"

#include <cstring>

namespace tilewright::test {
namespace {

const std::string kKernelPtx = ".version 8.0\n.target sm_90a\n";

class CudaKernel : public FakeDriver {
 protected:
  Device device_ = Device::open("cuda:0");

  Kernel by_driver(const std::string& entry = "scale") {
    return load_ptx(device_, kKernelPtx, entry, {.assembler = "driver"});
  }
  Kernel from_cubin(const std::string& entry = "scale") {
    Assembled cubin;
    cubin.bytes.resize(8);
    return load_cubin(device_, cubin, entry);
  }
  static Parameters parameters() { return Parameters().add(std::uint64_t{0x1122}).add(7); }
};

TEST_F(CudaKernel, LoadsMachineCodeAsALibraryAndUnloadsIt) {
  {
    Kernel kernel = from_cubin();
    Kernel copy = kernel;
    EXPECT_EQ(status().libraries, 1);
    EXPECT_EQ(status().modules, 0);
  }
  EXPECT_EQ(status().libraries, 0);
}

TEST_F(CudaKernel, LetsTheDriverAssembleText) {
  status().jit_log =
      "ptxas info    : Compiling entry function 'scale' for 'sm_90a'\n"
      "ptxas info    : Used 40 registers\n";
  {
    Kernel kernel = by_driver();
    EXPECT_EQ(status().modules, 1);
    EXPECT_EQ(kernel.assembled().assembler, "driver 13.0");
    ASSERT_EQ(kernel.assembled().resources.size(), 1u);
    EXPECT_EQ(kernel.assembled().resources[0].registers, 40);
  }
  EXPECT_EQ(status().modules, 0);
}

TEST_F(CudaKernel, RefusesAnAdvisoryOfTheDriver) {
  status().jit_log = "ptxas info : (C7508) Potential Performance Loss: 'setmaxnreg' ignored.\n";
  EXPECT_EQ(error_of([&] { by_driver(); }),
            "assemble: the assembler gave up on what was asked: C7508: Potential Performance Loss: "
            "'setmaxnreg' ignored.; change the kernel, or allow the number in AssembleOptions");
  EXPECT_EQ(status().modules, 0);
}

TEST_F(CudaKernel, ReportsTheDriversLogForTextThatItRefuses) {
  fail("cuModuleLoadDataEx", 222);
  EXPECT_EQ(error_of([&] { by_driver(); }),
            "cuModuleLoadDataEx of scale: line 3: bad: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (the "
            "provided PTX was compiled with an unsupported toolchain.); the driver is for CUDA "
            "13.0: install a newer one, or an assembler (see tilewright doctor)");
}

TEST_F(CudaKernel, NamesAMissingEntry) {
  EXPECT_EQ(error_of([&] { from_cubin("missing"); }), "load: the code has no entry 'missing'");
  EXPECT_EQ(error_of([&] { by_driver("missing"); }), "load: the code has no entry 'missing'");
  EXPECT_EQ(status().libraries, 0);
  EXPECT_EQ(status().modules, 0);
}

TEST_F(CudaKernel, RefusesMulticastMemory) {
  std::string text =
      kKernelPtx + ".visible .entry k() { multimem.st.relaxed.sys.global.b32 [0], 1; }";
  EXPECT_EQ(error_of([&] { load_ptx(device_, text, "k"); }),
            "assemble: the kernel has multimem instructions, which this library does not run on "
            "GPUs: it makes no multicast memory there; use emulated devices");
}

TEST_F(CudaKernel, WithAGridBarrierTakesCooperativeLaunchesOnly) {
  Assembled cubin;
  for (char c : std::string("\0.strtab\0scale$resident_grid\0", 29))
    cubin.bytes.push_back(static_cast<std::byte>(c));
  Kernel kernel = load_cubin(device_, cubin, "scale");
  EXPECT_TRUE(kernel.attributes().resident_grid);
  EXPECT_FALSE(from_cubin().attributes().resident_grid);
  EXPECT_THROW(kernel.launch({}, parameters(), Stream::default_of(device_)), Error);
  kernel.launch({.cooperative = true}, parameters(), Stream::default_of(device_));
  EXPECT_EQ(status().last_launch.cooperative, 1);
  std::uint64_t first = 0;
  std::memcpy(&first, status().last_launch.parameters, 8);
  EXPECT_EQ(first, 0x1122U);
}

TEST_F(CudaKernel, ReadsItsAttributesAndAllowsAllSharedMemory) {
  Kernel kernel = from_cubin();
  EXPECT_EQ(kernel.attributes().registers, 40);
  EXPECT_EQ(kernel.attributes().local_bytes, 16);
  EXPECT_EQ(kernel.attributes().static_smem_bytes, 1024);
  EXPECT_EQ(kernel.attributes().max_threads_per_block, 512);
  EXPECT_EQ(kernel.attributes().parameter_bytes, 12);
  EXPECT_EQ(status().max_dynamic_smem, 232'448 - 1024);
}

TEST_F(CudaKernel, LaunchesWithEveryAttribute) {
  Kernel kernel = from_cubin();
  Stream stream(device_);
  LaunchConfig config{.grid = {6, 5, 4},
                      .block = {32, 2, 1},
                      .cluster = {2, 1, 1},
                      .dynamic_smem_bytes = 4096,
                      .cooperative = true,
                      .dependent = true};
  kernel.launch(config, parameters(), stream);
  const FakeCudaLaunch& launch = status().last_launch;
  EXPECT_EQ(launch.grid[0], 6u);
  EXPECT_EQ(launch.grid[2], 4u);
  EXPECT_EQ(launch.block[1], 2u);
  EXPECT_EQ(launch.cluster[0], 2u);
  EXPECT_EQ(launch.dynamic_smem_bytes, 4096u);
  EXPECT_EQ(launch.cooperative, 1);
  EXPECT_EQ(launch.dependent, 1);
  EXPECT_EQ(launch.stream, stream.handle());
}

TEST_F(CudaKernel, LaunchesWithoutAttributesThatWereNotAskedFor) {
  from_cubin().launch({}, parameters(), Stream::default_of(device_));
  const FakeCudaLaunch& launch = status().last_launch;
  EXPECT_EQ(launch.cluster[0], 0u);
  EXPECT_EQ(launch.cooperative, 0);
  EXPECT_EQ(launch.dependent, 0);
  EXPECT_EQ(launch.stream, nullptr);
}

TEST_F(CudaKernel, PassesParametersAsTheyAreAtEachLaunch) {
  PreparedLaunch launch = from_cubin().prepare({}, parameters());
  Stream stream = Stream::default_of(device_);
  launch.launch(stream);
  launch.parameters().set(8, 9);
  launch.launch(stream);
  EXPECT_EQ(status().last_launch.parameter_bytes, 12u);
  std::uint64_t first = 0;
  int second = 0;
  std::memcpy(&first, status().last_launch.parameters, 8);
  std::memcpy(&second, status().last_launch.parameters + 8, 4);
  EXPECT_EQ(first, 0x1122u);
  EXPECT_EQ(second, 9);
  EXPECT_EQ(status().launches, 2);
}

TEST_F(CudaKernel, AsksForClustersThatAreNotPortable) {
  Kernel kernel = from_cubin();
  kernel.prepare({.grid = {8, 1, 1}, .cluster = {8, 1, 1}}, parameters());
  EXPECT_EQ(status().non_portable_cluster, 0);
  kernel.prepare({.grid = {16, 1, 1}, .cluster = {16, 1, 1}}, parameters());
  EXPECT_EQ(status().non_portable_cluster, 1);
}

TEST_F(CudaKernel, NamesKernelAndShapeOfAFailedLaunch) {
  Kernel kernel = from_cubin();
  fail("cuLaunchKernelEx", 700);
  EXPECT_EQ(error_of([&] {
              kernel.launch({.grid = {3, 1, 1}, .block = {64, 1, 1}}, parameters(),
                            Stream::default_of(device_));
            }),
            "cuLaunchKernelEx of scale with grid (3,1,1), block (64,1,1): "
            "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered); the CUDA "
            "context is lost: find the fault with the same kernel on emu:sm_90a");
}

TEST_F(CudaKernel, RefusesImpossibleLaunchesBeforeTheDriverSeesThem) {
  Kernel kernel = from_cubin();
  Parameters short_by_four = Parameters().add(std::uint64_t{0});
  struct Row {
    const char* name;
    LaunchConfig config;
    Parameters given;
    const char* message;
  };
  const Row rows[] = {
      {"an empty grid",
       {.grid = {0, 1, 1}},
       parameters(),
       "launch of scale: grid (0,1,1) is empty; launch nothing instead"},
      {"a long y",
       {.grid = {1, 65'536, 1}},
       parameters(),
       "launch of scale: grid (1,65536,1) has over 65535 blocks in y or z; put the long extent in "
       "x"},
      {"too many threads",
       {.block = {513, 1, 1}},
       parameters(),
       "launch of scale: block (513,1,1) has over 512 threads (64 in z), the most that this kernel "
       "runs with"},
      {"a ragged cluster",
       {.grid = {3, 1, 1}, .cluster = {2, 1, 1}},
       parameters(),
       "launch of scale: grid (3,1,1) is not a multiple of cluster (2,1,1)"},
      {"a large cluster",
       {.grid = {32, 1, 1}, .cluster = {32, 1, 1}},
       parameters(),
       "launch of scale: cluster (32,1,1) has not between 1 and 16 blocks"},
      {"too much shared memory",
       {.dynamic_smem_bytes = 232'448},
       parameters(),
       "launch of scale: 1024 static and 232448 dynamic bytes of shared memory exceed the device's "
       "232448"},
      {"a missing parameter",
       {},
       short_by_four,
       "launch of scale: the kernel takes 12 bytes of parameters, 8 are given"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(error_of([&] { kernel.prepare(row.config, row.given); }), row.message) << row.name;
  }
  EXPECT_EQ(status().launches, 0);
}

TEST_F(CudaKernel, AsksTheDriverForOccupancy) {
  Kernel kernel = from_cubin();
  EXPECT_EQ(kernel.blocks_per_sm(256, 0), 8);
  EXPECT_EQ(kernel.active_clusters({.grid = {4, 1, 1}, .cluster = {4, 1, 1}}), 33);
}

TEST_F(CudaKernel, LetsTheDriverEncodeTensorMaps) {
  const std::int64_t shape[] = {100, 96};
  TensorMapArg arg{bf16, {64, 8}, TensorSwizzle::b128, TensorFill::nan};
  Parameters given;
  given.add(std::int32_t{7});
  pack(given, device_, arg, make_view(0x1000, bf16, shape));
  ASSERT_EQ(given.bytes().size(), 64u + 128u);
  FakeTensorMap map;
  std::memcpy(&map, given.bytes().data() + 64, sizeof map);
  EXPECT_EQ(map.type, 9);  // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
  EXPECT_EQ(map.rank, 2u);
  EXPECT_EQ(map.address, 0x1000u);
  EXPECT_EQ(map.extents[0], 96u);
  EXPECT_EQ(map.extents[1], 100u);
  EXPECT_EQ(map.strides[0], 192u);
  EXPECT_EQ(map.box[0], 64u);
  EXPECT_EQ(map.box[1], 8u);
  EXPECT_EQ(map.swizzle, 3);  // CU_TENSOR_MAP_SWIZZLE_128B
  EXPECT_EQ(map.fill, 1);
  fail("cuTensorMapEncodeTiled", 1);
  EXPECT_EQ(error_of([&] { pack(given, device_, arg, make_view(0x1000, bf16, shape)); }),
            "cuTensorMapEncodeTiled of a tensor of bf16: CUDA error 1");
}

TEST_F(CudaKernel, LetsTheDriverEncodeImagesForConvolutions) {
  const std::int64_t shape[] = {2, 20, 30, 64};
  TensorMapArg arg = im2col_arg(bf16, 4, {{-1, -1, 0}, {-2, -2, 0}, 64, 128});
  Parameters given;
  pack(given, device_, arg, make_view(0x1000, bf16, shape));
  FakeTensorMap map;
  std::memcpy(&map, given.bytes().data(), sizeof map);
  EXPECT_EQ(map.rank, 4u);
  EXPECT_EQ(map.extents[1], 30u);
  EXPECT_EQ(map.strides[2], 20u * 30 * 128);
  EXPECT_EQ(map.box[0], 64u);
  EXPECT_EQ(map.box[1], 128u);
  EXPECT_EQ(map.lower, -1);
  EXPECT_EQ(map.upper, -2);
}

TEST_F(CudaKernel, GivesTheDriverEachParameterWhereOneIsATensorMap) {
  status().takes_tensor_map = 1;
  Kernel kernel = from_cubin();
  EXPECT_EQ(kernel.attributes().parameter_bytes, -1);  // its layout is not the text's
  const std::int64_t shape[] = {100, 96};
  TensorMapArg arg{bf16, {64, 8}};
  Parameters given;
  given.add(std::int32_t{7});
  pack(given, device_, arg, make_view(0x1000, bf16, shape));
  Stream stream(device_);
  PreparedLaunch launch = kernel.prepare({}, given);
  launch.parameters().set(0, std::int32_t{8});
  launch.launch(stream);
  EXPECT_EQ(status().last_launch.parameters[0], 8);
  EXPECT_EQ(status().last_launch.map.address, 0x1000u);
  EXPECT_EQ(status().last_launch.map.box[1], 8u);
  EXPECT_EQ(error_of([&] { kernel.prepare({}, Parameters().add(7)); }),
            "launch of scale: the kernel takes 2 parameters, 1 of other sizes are given");
}

}  // namespace
}  // namespace tilewright::test

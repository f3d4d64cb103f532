// SPDX-License-Identifier: Apache-2.0
// Tests of many processes on one cache, one of them killed while it assembles.
#include "runtime/fake/cache_fixture.h"

#include <chrono>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace tilewright::test {
namespace {

class CacheProcesses : public CacheTest {
 protected:
  /// A child that does something and ends with 0 if that was right.
  template <typename Body>
  static pid_t start(const Body& body) {
    pid_t child = fork();
    if (child != 0) return child;
    int code = 1;
    try {
      code = body() ? 0 : 2;
    } catch (const Error&) {
      code = 3;
    }
    _exit(code);
  }
  /// A child that asks for the kernel.
  pid_t start_child() {
    return start([&] { return get_afresh().assembled().bytes.size() == 4 && warnings_.empty(); });
  }
  /// A child that asks for kKernels kernels, from number `first` on.
  static constexpr int kKernels = 8;
  pid_t start_child_of_many(int first) {
    return start([&] {
      KernelCache cache(options());
      const Device device = Device::open("cuda:0");
      const std::string ptx = ptx_;
      bool right = true;
      for (int i = 0; i < kKernels; ++i) {
        const std::string number = std::to_string((first + i) % kKernels);
        ptx_ = ptx;
        ptx_.append("// ").append(number).append("\n");
        right &= get(cache, device, "scale v1 " + number).assembled().bytes.size() == 4;
      }
      return right && cache.warnings().empty();
    });
  }
  static int exit_code(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  bool wait_for_runs(int count) {
    for (int i = 0; i < 1000; ++i) {
      if (assembler_.runs() >= count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
};

TEST_F(CacheProcesses, SixtyFourOnAColdCacheAssembleOnce) {
  assembler_.hold();  // until all have started
  std::vector<pid_t> children;
  children.reserve(64);
  for (int i = 0; i < 64; ++i)
    children.push_back(start_child());
  EXPECT_TRUE(wait_for_runs(1));
  assembler_.release();
  for (pid_t child : children)
    EXPECT_EQ(exit_code(child), 0);
  EXPECT_EQ(assembler_.runs(), 1);
}

TEST_F(CacheProcesses, SixtyFourAssembleEachOfManyKernelsOnce) {
  assembler_.hold();  // until some wait for others, each for another kernel
  std::vector<pid_t> children;
  children.reserve(64);
  for (int i = 0; i < 64; ++i)
    children.push_back(start_child_of_many(i));
  EXPECT_TRUE(wait_for_runs(2));
  assembler_.release();
  for (pid_t child : children)
    EXPECT_EQ(exit_code(child), 0);
  EXPECT_EQ(assembler_.runs(), kKernels);
}

TEST_F(CacheProcesses, AKilledOneLeavesNoLockBehind) {
  assembler_.hold();
  pid_t victim = start_child();
  ASSERT_TRUE(wait_for_runs(1));
  kill(victim, SIGKILL);
  EXPECT_EQ(exit_code(victim), 128 + SIGKILL);
  assembler_.release();
  EXPECT_EQ(exit_code(start_child()), 0);
  EXPECT_EQ(assembler_.runs(), 2);
}

TEST_F(CacheProcesses, OneThatWaitsTakesOverFromAKilledOne) {
  assembler_.hold();
  pid_t victim = start_child();
  ASSERT_TRUE(wait_for_runs(1));
  pid_t waiting = start_child();
  kill(victim, SIGKILL);
  exit_code(victim);
  EXPECT_TRUE(wait_for_runs(2));
  assembler_.release();
  EXPECT_EQ(exit_code(waiting), 0);
}

}  // namespace
}  // namespace tilewright::test

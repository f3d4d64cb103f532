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
  /// A child that asks for the kernel and ends with 0 if it got the right one.
  pid_t start_child() {
    pid_t child = fork();
    if (child != 0) return child;
    int code = 1;
    try {
      code = get_afresh().assembled().bytes.size() == 4 && warnings_.empty() ? 0 : 2;
    } catch (const Error&) {
      code = 3;
    }
    _exit(code);
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
  for (int i = 0; i < 64; ++i)
    children.push_back(start_child());
  EXPECT_TRUE(wait_for_runs(1));
  assembler_.release();
  for (pid_t child : children)
    EXPECT_EQ(exit_code(child), 0);
  EXPECT_EQ(assembler_.runs(), 1);
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

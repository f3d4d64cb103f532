// SPDX-License-Identifier: Apache-2.0
// The signal handler and the progress line.
#include "cli/interrupt.h"

#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace tilewright::cli {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

void note_interrupt(int) { interrupt_seen = 1; }

}  // namespace

InterruptHandler::InterruptHandler() {
  interrupt_seen = 0;
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, &old_interrupt_);
  ::sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptHandler::~InterruptHandler() {
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
}

bool interrupted() { return interrupt_seen != 0; }

bool keep_going(void*, std::uint64_t blocks_done) {
  using Clock = std::chrono::steady_clock;
  static const bool terminal = ::isatty(STDERR_FILENO) != 0;
  static const Clock::time_point start = Clock::now();
  static Clock::time_point shown = start;
  const Clock::time_point now = Clock::now();
  if (terminal && now - shown > std::chrono::seconds(1)) {
    shown = now;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start).count();
    std::fprintf(stderr, "\r%lld s, %llu blocks finished", static_cast<long long>(seconds),
                 static_cast<unsigned long long>(blocks_done));
  }
  return interrupt_seen == 0;
}

}  // namespace tilewright::cli

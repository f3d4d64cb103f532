// SPDX-License-Identifier: Apache-2.0
// Ctrl-C during long runs: what is known is printed instead of lost.
#pragma once

#include <csignal>
#include <cstdint>

namespace tilewright::cli {

/// While it lives, the first SIGINT or SIGTERM only sets a flag; a second one ends the process.
class InterruptHandler {
 public:
  InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;
  ~InterruptHandler();

 private:
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
};

bool interrupted();

/// For emu::Options::keep_going: false after an interrupt; shows progress on a terminal.
bool keep_going(void* context, std::uint64_t blocks_done);

}  // namespace tilewright::cli

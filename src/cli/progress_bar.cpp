// SPDX-License-Identifier: Apache-2.0
// Drawing the line, and taking it away.
#include "cli/progress_bar.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace tilewright::cli {

std::string bar_text(const std::string& what, int done, int of) {
  constexpr int kCells = 24;
  const int filled = of > 0 ? std::clamp(done * kCells / of, 0, kCells) : 0;
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(kCells - filled), '.') + "] " + std::to_string(done) +
         "/" + std::to_string(of) + " " + what;
}

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) != 0) {}

void ProgressBar::show(const std::string& what, int done, int of) {
  if (!terminal_) return;
  const std::string text = bar_text(what, done, of);
  const std::size_t blank = width_ > text.size() ? width_ - text.size() : 0;
  std::fprintf(stderr, "\r%s%s", text.c_str(), std::string(blank, ' ').c_str());
  width_ = text.size();
}

void ProgressBar::clear() {
  if (width_ == 0) return;
  std::fprintf(stderr, "\r%s\r", std::string(width_, ' ').c_str());
  width_ = 0;
}

}  // namespace tilewright::cli

// SPDX-License-Identifier: Apache-2.0
// A line on a terminal that says how far something is; nothing where stderr is no terminal.
#pragma once

#include <string>

namespace tilewright::cli {

class ProgressBar {
 public:
  ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() { clear(); }

  void show(const std::string& what, int done, int of);
  void clear();  ///< leaves an empty line, for other output

 private:
  bool terminal_;
  std::size_t width_ = 0;  ///< of what is shown now
};

/// "[#####.....]  12/24 what".
std::string bar_text(const std::string& what, int done, int of);

}  // namespace tilewright::cli

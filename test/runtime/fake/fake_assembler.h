// SPDX-License-Identifier: Apache-2.0
// A program that answers like ptxas, counts its runs and can be held or made to fail.
#pragma once

#include "runtime/process.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/stat.h>

namespace tilewright::test {

/// While it lives it is the only assembler. Its machine code is the word "code".
class FakeAssembler {
 public:
  FakeAssembler() {
    std::ofstream(program()) << "#!/bin/sh\n"
                                "if [ \"$1\" = --version ]; then\n"
                                "  echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit 0\n"
                                "fi\n"
                                "here=$(dirname \"$0\")\n"
                                "echo run >> $here/runs\n"
                                "while [ -e $here/hold ]; do sleep 0.02; done\n"
                                "if [ -e $here/answer ]; then cat $here/answer; fi\n"
                                "if [ -e $here/fail ]; then exit 255; fi\n"
                                "for output; do :; done\n"
                                "printf code > $output\n";
    chmod(program().c_str(), 0700);
    setenv("TILEWRIGHT_PTXAS", program().c_str(), 1);
    setenv("TILEWRIGHT_NVPTXCOMPILER", "none", 1);
  }
  ~FakeAssembler() {
    release();
    unsetenv("TILEWRIGHT_PTXAS");
    unsetenv("TILEWRIGHT_NVPTXCOMPILER");
  }

  std::string program() const { return directory_.file("ptxas"); }
  std::string file(const char* name) const { return directory_.file(name); }

  int runs() const {
    std::ifstream log(directory_.file("runs"));
    std::string line;
    int count = 0;
    while (std::getline(log, line))
      ++count;
    return count;
  }
  void hold() { std::ofstream(directory_.file("hold")) << "\n"; }
  void release() { std::remove(directory_.file("hold").c_str()); }
  void answer(const std::string& text) { std::ofstream(directory_.file("answer")) << text; }
  void fail(const std::string& text) {
    answer(text);
    std::ofstream(directory_.file("fail")) << "\n";
  }

 private:
  detail::TemporaryDirectory directory_;
};

}  // namespace tilewright::test

// SPDX-License-Identifier: Apache-2.0
// Entry point of the program `tilewright`.
#include "cli/program.h"
#include "tilewright/operators.h"

int main(int argc, char** argv) {
  return tilewright::cli::run_program(argc, argv, tilewright::operators());
}

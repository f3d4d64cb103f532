// SPDX-License-Identifier: Apache-2.0
// The program with operators that are made for tests.
#include "cli/program.h"
#include "cli/program/keep.h"
#include "cli/program/negate.h"
#include "cli/program/scale.h"

int main(int argc, char** argv) {
  const tilewright::Operator* const operators[] = {&tilewright::test::keep_operator(),
                                                   &tilewright::test::negate_operator(),
                                                   &tilewright::test::scale_operator()};
  return tilewright::cli::run_program(argc, argv, operators);
}

// SPDX-License-Identifier: Apache-2.0
// The program `tilewright`: its commands, and what their exit codes mean.
#pragma once

#include "tilewright/operator.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::cli {

enum class Exit : int {
  right = 0,
  comparison_failed = 1,
  bad_input = 2,  ///< usage, files, arguments, or nothing here to run on
  findings = 3,   ///< errors and undefined behaviour that the emulator or a check reports
};

enum class Format { text, json };

/// What the commands share. A command's callback sets `exit`.
struct Program {
  std::span<const Operator* const> operators;
  Exit exit = Exit::right;

  /// Throws Error(user) that lists the operators.
  const Operator& find(std::string_view name) const;
};

/// Runs the command that the arguments name and returns the exit code. Errors go to stderr.
int run_program(int argc, const char* const* argv, std::span<const Operator* const> operators);

/// Adds `--json` to a command; `format` must live until the command has run.
void add_json_flag(CLI::App& command, Format& format);

void add_doctor_command(CLI::App& app, Program& program);
void add_list_command(CLI::App& app, Program& program);
void add_run_command(CLI::App& app, Program& program);
void add_bench_command(CLI::App& app, Program& program);
void add_tune_command(CLI::App& app, Program& program);
void add_compile_command(CLI::App& app, Program& program);
void add_show_command(CLI::App& app, Program& program);
void add_cache_command(CLI::App& app, Program& program);
void add_emulate_command(CLI::App& app, Program& program);
void add_layout_command(CLI::App& app, Program& program);

}  // namespace tilewright::cli

// SPDX-License-Identifier: Apache-2.0
// Putting the commands together, and turning errors into exit codes.
#include "cli/program.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

namespace tilewright::cli {
namespace {

int fail(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "tilewright: error: %s\n", message.c_str());
  return static_cast<int>(Exit::bad_input);
}

/// The message after the line that it is about: of PTX or of a kernel's source, not of this
/// library.
std::string located(const Error& error) {
  const SourceLoc where = error.where();
  const std::string_view file = where.file;
  const bool ours = file.find("src/") != std::string_view::npos && file.ends_with(".cpp");
  if (where.line == 0 || ours) return error.message();
  return base_name(where.file) + ":" + std::to_string(where.line) + ": " + error.message();
}

/// The command that was being read when its arguments turned out wrong: "tilewright run".
std::string command_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return app.get_name() + (chosen.empty() ? "" : " " + chosen.front()->get_name());
}

int parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(std::string(error.what()) + "; see " + command_of(app) + " --help");
  }
  return -1;
}

}  // namespace

const Operator& Program::find(std::string_view name) const {
  std::string names;
  for (const Operator* op : operators) {
    if (op->schema.name == name) return *op;
    names += (names.empty() ? "" : ", ") + std::string(op->schema.name);
  }
  throw Error(ErrorKind::user, "no operator is named '" + std::string(name) + "'; this build has " +
                                   (names.empty() ? "none" : names));
}

void add_json_flag(CLI::App& command, Format& format) {
  command.add_flag_callback(
      "--json", [&format] { format = Format::json; }, "Print JSON instead of text");
}

int run_program(int argc, const char* const* argv, std::span<const Operator* const> operators) {
  Program program{operators};
  CLI::App app("GPU kernels, specialised at run time: run, measure and check them", "tilewright");
  app.set_version_flag("--version", "tilewright " TILEWRIGHT_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 right, 1 a comparison failed, 2 bad usage or input, 3 findings.\n"
      "'tilewright COMMAND --help' explains a command.");
  add_doctor_command(app, program);
  add_list_command(app, program);
  add_run_command(app, program);
  add_bench_command(app, program);
  add_tune_command(app, program);
  add_compile_command(app, program);
  add_show_command(app, program);
  add_cache_command(app, program);
  add_emulate_command(app, program);
  add_layout_command(app, program);
  try {
    const int early = parse(app, argc, argv);
    if (early >= 0) return early;
  } catch (const Error& error) {
    const std::string start = error.kind() == ErrorKind::internal ? "internal: " : "";
    return fail(start + located(error));
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& error) {
    return fail(std::string("internal: ") + error.what());
  }
  if (std::fflush(stdout) != 0) return fail("cannot write output: " + std::string(strerror(errno)));
  return static_cast<int>(program.exit);
}

}  // namespace tilewright::cli

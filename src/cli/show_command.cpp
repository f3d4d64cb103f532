// SPDX-License-Identifier: Apache-2.0
// `tilewright show`: the PTX, machine code, resources and source lines of an operator's kernels.
#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/program.h"
#include "cli/text.h"
#include "emu/grid.h"
#include "tilewright/assembler.h"
#include "tilewright/module.h"
#include "tilewright/trace.h"

#include <map>
#include <memory>

namespace tilewright::cli {
namespace {

enum class What { resources, ptx, sass, source_map };

struct ShowRequest {
  InputRequest inputs;
  std::vector<std::string> wanted;
  std::string target = "sm_90a";
  What what = What::resources;
  bool bank_conflicts = false;
  Format format = Format::text;
};

using Source = std::pair<std::string, std::uint32_t>;  ///< file, line

/// An instruction and where it comes from: the line, then the lines it was inlined at.
struct Line {
  std::uint32_t ptx_line = 0;
  std::vector<Source> sources;
};

std::vector<Line> source_lines(const ptx::Module& module) {
  std::vector<Line> lines;
  for (const ptx::Function& function : module.functions) {
    for (const ptx::Stmt& statement : function.body) {
      const ptx::Instr* instr = std::get_if<ptx::Instr>(&statement);
      if (instr == nullptr) continue;
      Line line{instr->line, {}};
      for (ptx::SiteId id = instr->site; id != 0; id = module.sites[id].parent) {
        const ptx::Site& site = module.sites[id];
        line.sources.emplace_back(module.files[site.file], site.line);
      }
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::string text_of(const Source& source) {
  return source.first.empty() ? "(unknown)" : source.first + ":" + std::to_string(source.second);
}

/// One row a source line: how many instructions it became, and which PTX lines.
std::string source_map_text(const std::vector<Line>& lines) {
  std::map<Source, std::vector<std::uint32_t>> by_source;
  for (const Line& line : lines) {
    by_source[line.sources.empty() ? Source{} : line.sources.front()].push_back(line.ptx_line);
  }
  Columns columns;
  columns.add({"source", "instructions", "PTX lines"});
  for (const auto& [source, ptx_lines] : by_source) {
    std::string ranges;
    for (std::size_t i = 0; i < ptx_lines.size();) {
      std::size_t end = i + 1;
      while (end < ptx_lines.size() && ptx_lines[end] == ptx_lines[end - 1] + 1)
        ++end;
      ranges += (ranges.empty() ? "" : ", ") + std::to_string(ptx_lines[i]);
      if (end > i + 1) ranges += "-" + std::to_string(ptx_lines[end - 1]);
      i = end;
    }
    columns.add({text_of(source), std::to_string(ptx_lines.size()), ranges});
  }
  return columns.text("  ");
}

Json source_map_json(const std::vector<Line>& lines) {
  Json json = Json::array();
  for (const Line& line : lines) {
    Json sources = Json::array();
    for (const Source& source : line.sources)
      sources.push_back(text_of(source));
    json.push_back({{"ptx_line", line.ptx_line}, {"sources", std::move(sources)}});
  }
  return json;
}

std::string resources_text(const Assembled& assembled) {
  Columns columns;
  for (const EntryResources& r : assembled.resources) {
    columns.add({r.entry, plural(r.registers, "register"),
                 grouped(std::int64_t{r.static_smem_bytes}) + " bytes static shared memory",
                 grouped(std::int64_t{r.stack_bytes}) + " bytes stack",
                 grouped(std::int64_t{r.spill_store_bytes}) + "/" +
                     grouped(std::int64_t{r.spill_load_bytes}) + " bytes spilled (stores/loads)",
                 plural(r.barriers, "barrier")});
  }
  return columns.text("  ") + "  assembled by " + assembled.assembler + " in " +
         fixed(assembled.assemble_ms, 1) + " ms\n";
}

Json resources_json(const Assembled& assembled) {
  Json json = {{"assembler", assembled.assembler},
               {"assemble_ms", assembled.assemble_ms},
               {"entries", Json::array()}};
  for (const EntryResources& r : assembled.resources) {
    json["entries"].push_back({{"entry", r.entry},
                               {"registers", r.registers},
                               {"static_smem_bytes", r.static_smem_bytes},
                               {"stack_bytes", r.stack_bytes},
                               {"spill_store_bytes", r.spill_store_bytes},
                               {"spill_load_bytes", r.spill_load_bytes},
                               {"constant_bytes", r.constant_bytes},
                               {"barriers", r.barriers}});
  }
  return json;
}

/// Passes through shared memory that a kernel's accesses took, and those that they need.
struct Banks {
  std::string entry;
  struct Passes {
    std::uint64_t taken = 0, needed = 0;
  } loads, stores, others;
};

Banks banks_of(const emu::Launch& launch, const emu::LaunchReport& report) {
  Banks banks{launch.entry, {}, {}, {}};
  for (const emu::InstrCount& each : report.counters.instructions) {
    Banks::Passes& passes = each.instruction.starts_with("ld")   ? banks.loads
                            : each.instruction.starts_with("st") ? banks.stores
                                                                 : banks.others;
    passes.taken += each.wavefronts;
    passes.needed += each.ideal_wavefronts;
  }
  return banks;
}

/// Of every launch of the operator, in the emulator.
std::vector<Banks> count_banks(const Inputs& inputs, const std::vector<std::string>& wanted,
                               const std::string& target) {
  const Device device = Device::open("emu:" + target);
  emu::Options options;
  options.counters = emu::Counting::on;
  device.set_options(options);
  const tune::Session session(device, inputs, wanted);
  std::vector<Banks> all;
  device.emulator().device().hooks.after = [&](const emu::Launch& launch,
                                               const emu::LaunchReport& report) {
    all.push_back(banks_of(launch, report));
  };
  const Stream stream(device);
  session.launch(stream);
  stream.synchronize();
  return all;
}

std::string text_of(const Banks& banks) {
  const auto passes = [](const char* what, const Banks::Passes& of) {
    return grouped(of.taken - of.needed) + " bank conflicts in " + grouped(of.taken) +
           " passes of shared " + what;
  };
  return "  " + banks.entry + "  " + passes("loads", banks.loads) + ", " +
         passes("stores", banks.stores) + ", " + passes("atomics", banks.others) + "\n";
}

Json json_of(const Banks& banks) {
  const auto passes = [](const Banks::Passes& of) {
    return Json{{"passes", of.taken}, {"bank_conflicts", of.taken - of.needed}};
  };
  return {{"entry", banks.entry},
          {"shared_loads", passes(banks.loads)},
          {"shared_stores", passes(banks.stores)},
          {"shared_atomics", passes(banks.others)}};
}

/// What was asked for of one kernel, as text and as JSON.
struct Shown {
  std::string text;
  Json json;
};

Shown show_kernel(Traced& traced, const ShowRequest& request, ptx::Target target) {
  const bool map = request.what == What::source_map;
  const std::string ptx = ptx::print(traced.module(), map ? ptx::LineInfo::on : ptx::LineInfo::off);
  switch (request.what) {
    case What::ptx:
      return {ptx, ptx};
    case What::source_map: {
      const std::vector<Line> lines = source_lines(traced.module());
      return {source_map_text(lines), source_map_json(lines)};
    }
    case What::sass: {
      std::string sass = disassemble(assemble(ptx, target).bytes);
      return {sass, sass};
    }
    case What::resources:
      break;
  }
  const Assembled assembled = assemble(ptx, target);
  return {resources_text(assembled), resources_json(assembled)};
}

void show(const Program& program, ShowRequest request) {
  const Operator& op = program.find(request.inputs.op);
  const bool no_inputs = request.inputs.files.empty() && request.inputs.problem.empty();
  if (no_inputs && !op.bench_problems.empty()) {
    request.inputs.problem = op.bench_problems.front();
  }
  const ptx::Target target = ptx::parse_target(request.target);
  const Inputs inputs = load_inputs(program, request.inputs);
  const Arguments arguments = tune::unplaced_arguments(inputs, inputs.wanted(request.wanted));
  std::vector<Traced> kernels = op.trace(arguments, target);
  Json json = {
      {"operator", request.inputs.op}, {"target", to_string(target)}, {"kernels", Json::array()}};
  for (Traced& traced : kernels) {
    Shown shown = show_kernel(traced, request, target);
    if (request.format == Format::json) {
      const char* const keys[] = {"resources", "ptx", "sass", "source_map"};
      json["kernels"].push_back(
          {{"entry", traced.entry}, {keys[static_cast<int>(request.what)], std::move(shown.json)}});
      continue;
    }
    if (request.what == What::resources || request.what == What::source_map) {
      print(traced.entry + " for " + to_string(target) + "\n");
    }
    print(shown.text);
  }
  if (request.bank_conflicts) {
    for (const Banks& banks : count_banks(inputs, inputs.wanted(request.wanted), request.target)) {
      json["launches"].push_back(json_of(banks));
      if (request.format == Format::text) print(text_of(banks));
    }
  }
  if (request.format == Format::json) print_json(json);
}

}  // namespace

void add_show_command(CLI::App& app, Program& program) {
  auto request = std::make_shared<ShowRequest>();
  CLI::App* command = app.add_subcommand(
      "show", "Show the kernels that an operator runs: resources, PTX, SASS, source lines");
  add_input_options(*command, request->inputs);
  command
      ->add_option("--with", request->wanted, "Compute this optional output too; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--target", request->target, "Architecture")->capture_default_str();
  const auto flag = [&](const char* name, What what, const char* help) {
    return command->add_flag_callback(
        name, [request, what] { request->what = what; }, help);
  };
  CLI::Option* const ptx = flag("--ptx", What::ptx, "The PTX");
  CLI::Option* const sass = flag("--sass", What::sass, "The machine code, disassembled");
  CLI::Option* const map =
      flag("--source-map", What::source_map, "Which C++ line became which PTX lines");
  CLI::Option* const resources =
      flag("--resources", What::resources, "Registers, shared memory, spills (the default)");
  command->add_flag("--bank-conflicts", request->bank_conflicts,
                    "Launch in the emulator, and count conflicts in shared memory");
  ptx->excludes(sass)->excludes(map)->excludes(resources);
  sass->excludes(map)->excludes(resources);
  map->excludes(resources);
  add_json_flag(*command, request->format);
  command->callback([&program, request] { show(program, *request); });
}

}  // namespace tilewright::cli

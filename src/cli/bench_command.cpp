// SPDX-License-Identifier: Apache-2.0
// `tilewright bench`: operators over problems, measured against a copy in the same run.
#include "cli/bandwidth_plot.h"
#include "cli/json.h"
#include "cli/measure.h"
#include "cli/program.h"
#include "cli/text.h"
#include "tilewright/dependent_launches.h"
#include "tilewright/stream.h"

#include <ctime>
#include <memory>
#include <optional>

namespace tilewright::cli {
namespace {

struct BenchRequest {
  std::vector<std::string> ops;
  std::vector<std::string> problems;
  std::string device = "cuda:0";
  std::string commit;
  std::string svg;
  std::vector<std::string> peers;
  bool dependent = false;
  Format format = Format::text;
};

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  char buffer[32];
  std::tm parts{};
  gmtime_r(&now, &parts);
  return {buffer, std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::vector<BenchRow> measure_all(const Program& program, const BenchRequest& request,
                                  const Device& device) {
  std::vector<BenchRow> rows;
  const Stream stream(device);
  for (const std::string& name : request.ops) {
    const Operator& op = program.find(name);
    std::vector<std::string> problems = request.problems;
    if (problems.empty()) problems.assign(op.bench_problems.begin(), op.bench_problems.end());
    if (problems.empty()) {
      throw Error(ErrorKind::user, name + ": has no problems of its own; give --shapes");
    }
    for (const std::string& problem : problems) {
      const tune::Inputs inputs = tune::make_problem_inputs(op, problem, 0);
      rows.push_back({name, problem, measure(stream, inputs, {}, program.operators)});
      if (request.format == Format::text) {
        std::string line = name;
        line.append(" ").append(problem).append(": ");
        print(line.append(text_of(rows.back().measurement)).append("\n"));
        std::fflush(stdout);
      }
    }
  }
  return rows;
}

/// Google Benchmark's format, which scripts/docs.py reads.
Json json_of(const std::vector<BenchRow>& rows, const BenchRequest& request, const Device& device) {
  Json json = {{"context",
                {{"date", now_text()},
                 {"device", device.properties().name},
                 {"driver", driver_text(device)},
                 {"assembler", assembler_text()},
                 {"commit", request.commit.empty() ? "unknown" : request.commit}}},
               {"benchmarks", Json::array()}};
  for (const BenchRow& row : rows) {
    Json each = {{"name", row.op + " " + row.problem}};
    each.update(json_of(row.measurement));
    json["benchmarks"].push_back(std::move(each));
  }
  return json;
}

/// Names and problems are wrong or right with and without a GPU.
void check_problems(const Program& program, const BenchRequest& request) {
  for (const std::string& name : request.ops) {
    const Operator& op = program.find(name);
    for (const std::string& problem : request.problems)
      parse_problem(op.schema, problem, SourceLoc{});
  }
}

void bench(const Program& program, BenchRequest request) {
  check_problems(program, request);
  std::vector<PeerRow> peers;
  for (const std::string& path : request.peers) {
    const std::vector<PeerRow> more = read_peers(path);
    peers.insert(peers.end(), more.begin(), more.end());
  }
  if (request.device.starts_with("cuda") && Device::cuda_count() == 0) {
    throw Error(ErrorKind::unsupported, "bench: needs a GPU: " + Device::why_no_cuda() +
                                            "; 'tilewright run' gives checks and counters without");
  }
  const Device device = Device::open(request.device);
  if (request.ops.empty()) {
    for (const Operator* op : program.operators)
      request.ops.emplace_back(op->schema.name);
  }
  std::optional<DependentLaunches> dependent;
  if (request.dependent) dependent.emplace();
  const std::vector<BenchRow> rows = measure_all(program, request, device);
  if (!request.svg.empty())
    write_file(request.svg, draw_plot(bandwidth_plot(rows, peers, device.properties().name)));
  if (request.format == Format::json) print_json(json_of(rows, request, device));
}

}  // namespace

void add_bench_command(CLI::App& app, Program& program) {
  auto request = std::make_shared<BenchRequest>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure operators on a GPU against a copy of as many bytes in the same run");
  command->add_option("OP", request->ops, "Operators; default: all");
  command
      ->add_option(
          "--shapes,--problem", request->problems,
          "Problem such as T=1,H=4096,x=bf16; may be repeated; default: the operator's own")
      ->allow_extra_args(false);
  command->add_option("--device", request->device, "cuda:N")->capture_default_str();
  command->add_option("--commit", request->commit, "Named in the JSON as what was measured");
  CLI::Option* svg =
      command->add_option("--svg", request->svg, "Draw bandwidth over the first size to this file");
  command
      ->add_option("--peers", request->peers,
                   "Draw the best peers of this file of bench/peers, too; may be repeated")
      ->needs(svg)
      ->allow_extra_args(false);
  command->add_flag(
      "--dependent", request->dependent,
      "As dependent launches: kernels begin before the one in front ends; copies too");
  add_json_flag(*command, request->format);
  command->callback([&program, request] { bench(program, *request); });
}

}  // namespace tilewright::cli

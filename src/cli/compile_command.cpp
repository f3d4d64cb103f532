// SPDX-License-Identifier: Apache-2.0
// `tilewright compile`: kernels for GPUs that need not be here, into the cache or into a bundle.
#include "cli/json.h"
#include "cli/model.h"
#include "cli/program.h"
#include "cli/progress_bar.h"
#include "cli/text.h"
#include "tilewright/cache.h"
#include "tilewright/dependent_launches.h"
#include "tilewright/offline_compiler.h"
#include "tilewright/stream.h"
#include "tune/session.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace tilewright::cli {
namespace {

struct CompileRequest {
  std::vector<std::string> ops;
  std::vector<std::string> problems;
  std::string model;
  std::vector<std::int64_t> tokens{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
  std::int64_t ranks = 1;
  std::vector<std::string> gpus{"NVIDIA H200"};
  std::string out;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  bool missing = false;
  bool dependent = false;
  Format format = Format::text;
};

struct Failure {
  Work work;
  std::string message;
};

std::vector<Work> all_work(const Program& program, const CompileRequest& request) {
  std::vector<Work> work;
  if (!request.model.empty()) work = work_of_model(request.model, request.tokens, request.ranks);
  if (request.model.empty() && request.ops.empty()) {
    throw Error(ErrorKind::user,
                "compile: nothing to compile; name operators, or --model config.json");
  }
  for (const std::string& name : request.ops) {
    const Operator& op = program.find(name);
    std::vector<std::string> problems = request.problems;
    if (problems.empty()) problems.assign(op.bench_problems.begin(), op.bench_problems.end());
    if (problems.empty()) {
      throw Error(ErrorKind::user, name + ": has no problems of its own; give --shapes");
    }
    for (std::string& problem : problems)
      work.push_back({name, std::move(problem)});
  }
  return work;
}

DeviceProperties properties_of(const std::string& gpu) {
  return gpu.starts_with("cuda:") ? Device::open(gpu).properties() : known_gpu(gpu);
}

/// With the outputs that may be an input, and have its shape and type, in its place, if there are.
std::optional<Arguments> in_place(Arguments arguments) {
  bool any = false;
  for (const TensorSpec& out : arguments.schema().tensors) {
    if (out.may_alias.empty()) continue;
    const View* apart = arguments.find(out.name);
    const View* in = arguments.find(out.may_alias);
    if (apart == nullptr || in == nullptr) continue;
    View same = *apart;
    same.address = in->address;
    if (same != *in) continue;
    arguments.set(out.name, same);
    any = true;
  }
  return any ? std::optional(std::move(arguments)) : std::nullopt;
}

/// Launches one problem, in place, too, on a device that only notes its kernels.
void launch(const Program& program, const CompileRequest& request, const OfflineCompiler& compiler,
            const Work& work) {
  const Operator& op = program.find(work.op);
  compiler.set_problem(work.op + " " + work.problem);
  const Arguments arguments =
      tune::unplaced_arguments(tune::make_problem_shapes(op, work.problem), {});
  const Stream stream = Stream::default_of(compiler.device());
  const std::optional<Arguments> same_memory = in_place(arguments);
  const auto launch_both = [&] {
    op.launch(compiler.device(), stream, arguments);
    if (same_memory) op.launch(compiler.device(), stream, *same_memory);
  };
  launch_both();
  if (!request.dependent) return;
  const DependentLaunches scope;
  launch_both();
}

/// All problems on `jobs` threads; what failed, in the order of the work.
std::vector<Failure> launch_all(const Program& program, const CompileRequest& request,
                                const OfflineCompiler& compiler, const std::vector<Work>& work) {
  std::vector<std::string> messages(work.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  int done = 0;
  ProgressBar bar;
  const auto run = [&] {
    for (std::size_t i = next++; i < work.size(); i = next++) {
      try {
        launch(program, request, compiler, work[i]);
      } catch (const Error& error) {
        messages[i] = error.message();
      }
      std::lock_guard lock(mutex);
      bar.show(work[i].op, ++done, static_cast<int>(work.size()));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < request.jobs; ++i)
    threads.emplace_back(run);
  for (std::thread& thread : threads)
    thread.join();
  std::vector<Failure> failures;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (!messages[i].empty()) failures.push_back({work[i], messages[i]});
  }
  return failures;
}

Json json_of(const BundleKernel& kernel) {
  return {{"entry", kernel.entry},
          {"target", ptx::to_string(kernel.target)},
          {"problem", kernel.problem},
          {"front_key", kernel.front_key},
          {"grid", to_string(kernel.launch.grid)},
          {"block", to_string(kernel.launch.block)},
          {"cluster", to_string(kernel.launch.cluster)},
          {"dynamic_smem_bytes", kernel.launch.dynamic_smem_bytes},
          {"parameter_bytes", kernel.parameter_bytes},
          {"recipe", kernel.recipe},
          {"code_bytes", kernel.assembled.bytes.size()},
          {"assembler", kernel.assembled.assembler}};
}

void report(const CompileRequest& request, const std::vector<BundleKernel>& kernels,
            const std::vector<Failure>& failures, double seconds) {
  const std::int64_t assembled = KernelCache::global().counters().assembled;
  const auto count = static_cast<std::int64_t>(kernels.size());
  if (request.format == Format::json) {
    Json json = {{"kernels", Json::array()},
                 {"assembled", assembled},
                 {"seconds", seconds},
                 {"failures", Json::array()}};
    for (const BundleKernel& kernel : kernels)
      json["kernels"].push_back(json_of(kernel));
    for (const Failure& failure : failures) {
      json["failures"].push_back({{"operator", failure.work.op},
                                  {"problem", failure.work.problem},
                                  {"message", failure.message}});
    }
    return print_json(json);
  }
  if (request.missing) {
    return print(plural(count, "kernel") + " present, " +
                 plural(static_cast<std::int64_t>(failures.size()), "problem") + " to compile\n");
  }
  print(plural(count, "kernel") + ", " + std::to_string(assembled) + " of them assembled now, in " +
        fixed(seconds, 1) + " s\n");
  if (!request.out.empty() && failures.empty()) print("written: " + request.out + "\n");
}

void compile_command(Program& program, const CompileRequest& request) {
  // Before the cache is used for the first time: it then has every kernel, or says that it has not.
  if (request.missing) setenv("TILEWRIGHT_COMPILE", "off", 1);
  const KernelCache& cache = KernelCache::global();  // or what is wrong with TILEWRIGHT_BUNDLES
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Work> work = all_work(program, request);
  std::vector<BundleKernel> kernels;
  std::vector<Failure> failures;
  for (const std::string& gpu : request.gpus) {
    const OfflineCompiler compiler(properties_of(gpu));
    for (Failure& failure : launch_all(program, request, compiler, work))
      failures.push_back(std::move(failure));
    for (BundleKernel& kernel : compiler.kernels())
      kernels.push_back(std::move(kernel));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (const Failure& failure : failures) {
    std::fprintf(stderr, "%s %s: %s\n", failure.work.op.c_str(), failure.work.problem.c_str(),
                 failure.message.c_str());
  }
  for (const std::string& warning : cache.warnings())
    std::fprintf(stderr, "tilewright: warning: %s\n", warning.c_str());
  if (request.out.empty() && !request.missing && !kernels.empty() && cache.list().empty()) {
    throw Error(ErrorKind::user,
                "compile: there is no cache that could keep the kernels; give --out FILE");
  }
  if (!failures.empty()) program.exit = request.missing ? Exit::comparison_failed : Exit::bad_input;
  if (!request.out.empty() && failures.empty()) write_bundle(request.out, kernels);
  report(request, kernels, failures, took.count());
}

}  // namespace

void add_compile_command(CLI::App& app, Program& program) {
  auto request = std::make_shared<CompileRequest>();
  CLI::App* command = app.add_subcommand(
      "compile",
      "Compile operators' kernels for a GPU that need not be here, into the cache or a bundle");
  command->add_option("OP", request->ops, "Operators; 'tilewright list' shows them");
  command
      ->add_option(
          "--shapes,--problem", request->problems,
          "Problem such as T=1,H=4096,x=bf16; may be repeated; default: the operator's own")
      ->allow_extra_args(false);
  command->add_option("--model", request->model,
                      "A config.json with Hugging Face's names: all operators of the model");
  command->add_option("--tokens", request->tokens, "Numbers of tokens for --model")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--tensor-parallel", request->ranks,
                   "GPUs that share the heads and widths of --model")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--gpu", request->gpus,
                   "For which GPU: its name, or cuda:N for one that is here; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--out", request->out, "The bundle to write; without it the cache is filled");
  command->add_option("--jobs", request->jobs, "Threads")->check(CLI::Range(1U, 1024U));
  command->add_flag(
      "--missing", request->missing,
      "Compile nothing: report what neither cache nor TILEWRIGHT_BUNDLES has (exit code 1)");
  command->add_flag("--dependent", request->dependent,
                    "Also the kernels of dependent launches (DependentLaunches)");
  add_json_flag(*command, request->format);
  command->callback([&program, request] { compile_command(program, *request); });
}

}  // namespace tilewright::cli

// SPDX-License-Identifier: Apache-2.0
// The assembler program ptxas.
#include "runtime/assemblers.h"
#include "runtime/process.h"

#include <charconv>

namespace tilewright::detail {
namespace {

/// "13.0.88" of "Cuda compilation tools, release 13.0, V13.0.88".
std::string version_in(const std::string& output) {
  std::size_t at = output.find(", V");
  if (at == std::string::npos) return {};
  std::size_t end = output.find_first_not_of("0123456789.", at + 3);
  return output.substr(at + 3, end == std::string::npos ? end : end - at - 3);
}

/// 13000 of "13.0.88"; 0 for something else.
int cuda_version_in(const std::string& version) {
  int major = 0;
  int minor = 0;
  const char* end = version.data() + version.size();
  auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return 0;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc()) return 0;
  return major * 1000 + minor * 10;
}

Assembler probe(const std::string& path) {
  Assembler assembler;
  assembler.info.name = "ptxas";
  assembler.info.path = path;
  try {
    assembler.info.version = version_in(run_program(path, {"--version"}).output);
  } catch (const Error& error) {
    assembler.info.reason = error.message();
    return assembler;
  }
  assembler.cuda_version = cuda_version_in(assembler.info.version);
  if (assembler.cuda_version == 0) {
    assembler.info.reason = path + " --version does not say a CUDA version";
    return assembler;
  }
  assembler.info.newest_ptx = newest_ptx(assembler.cuda_version);
  assembler.info.usable = true;
  return assembler;
}

}  // namespace

Assembler probe_ptxas() {
  Assembler found;
  found.info.name = "ptxas";
  found.info.reason =
      "no program ptxas in PATH, /usr/local/cuda/bin or Python packages; pip "
      "install nvidia-cuda-nvcc, or set TILEWRIGHT_PTXAS to its path";
  for (const std::string& path : find_programs("ptxas", "TILEWRIGHT_PTXAS")) {
    found = probe(path);
    if (found.info.usable) break;
  }
  return found;
}

AssembleOutput run_ptxas(const std::string& path, const AssembleJob& job) {
  TemporaryDirectory directory;
  std::string input = directory.file("kernel.ptx");
  std::string output_file = directory.file("kernel.cubin");
  write_file(input, std::as_bytes(std::span(job.ptx)));
  std::vector<std::string> arguments{"-v",
                                     "-arch=" + ptx::to_string(job.target),
                                     "-O" + std::to_string(job.options.opt_level),
                                     input,
                                     "-o",
                                     output_file};
  if (job.options.line_info) arguments.insert(arguments.begin(), "-lineinfo");
  ProgramResult result = run_program(path, arguments);
  AssembleOutput output;
  output.failed = result.exit_code != 0;
  output.log = std::move(result.output);
  if (output.failed) {
    if (result.signal != 0) {
      output.log += "ptxas was ended by signal " + std::to_string(result.signal);
    }
    return output;
  }
  output.bytes = read_file(output_file);
  return output;
}

}  // namespace tilewright::detail

// SPDX-License-Identifier: Apache-2.0
// SASS by NVIDIA's disassemblers.
#include "runtime/process.h"
#include "tilewright/assembler.h"

namespace tilewright {

std::string disassemble(std::span<const std::byte> cubin, SourceLoc at) {
  detail::TemporaryDirectory directory;
  std::string file = directory.file("kernel.cubin");
  detail::write_file(file, cubin);
  std::string failures;
  auto attempt = [&](const char* program, const char* variable,
                     const std::vector<std::string>& arguments) -> std::string {
    for (const std::string& path : detail::find_programs(program, variable)) {
      detail::ProgramResult result = detail::run_program(path, arguments);
      if (result.exit_code == 0) return result.output;
      failures += "; " + path + ": " + result.output;
    }
    return {};
  };
  std::string sass = attempt("nvdisasm", "TILEWRIGHT_NVDISASM", {"-c", file});
  if (sass.empty()) sass = attempt("cuobjdump", "TILEWRIGHT_CUOBJDUMP", {"-sass", file});
  if (!sass.empty()) return sass;
  if (!failures.empty()) throw Error(ErrorKind::user, "disassemble: " + failures.substr(2), at);
  throw Error(ErrorKind::unsupported,
              "disassemble: neither nvdisasm nor cuobjdump was found; pip install "
              "nvidia-cuda-nvdisasm, or install the CUDA toolkit",
              at);
}

}  // namespace tilewright

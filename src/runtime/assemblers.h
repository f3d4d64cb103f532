// SPDX-License-Identifier: Apache-2.0
// The assemblers one by one: how each is found and run.
#pragma once

#include "tilewright/assembler.h"

#include <optional>
#include <string>
#include <vector>

namespace tilewright::detail {

struct Assembler {
  AssemblerInfo info;
  int cuda_version = 0;  ///< 13000: it belongs to CUDA 13.0
};

struct AssembleJob {
  const std::string& ptx;
  ptx::Target target;
  const AssembleOptions& options;
};

/// Machine code, or `failed` with the assembler's words in the log.
struct AssembleOutput {
  bool failed = false;
  std::vector<std::byte> bytes;
  std::string log;
};

Assembler probe_nvptxcompiler();
AssembleOutput run_nvptxcompiler(const AssembleJob& job);

Assembler probe_ptxas();
AssembleOutput run_ptxas(const std::string& path, const AssembleJob& job);

Assembler probe_driver();

/// The linker for kernels with objects of the user's.
Assembler probe_nvjitlink();
AssembleOutput run_nvjitlink(const AssembleJob& job);

/// The first assembler that makes machine code, reads this PTX version and is not newer than CUDA
/// `max_cuda` (0: any). Without one, `reasons` says why, assembler by assembler.
struct AssemblerChoice {
  std::optional<Assembler> chosen;
  std::string reasons;
};
AssemblerChoice choose_assembler(ptx::Version ptx, int max_cuda, const AssembleOptions& options);
/// The same for code that a CUDA device is to load: nothing leaves it to the driver. Throws
/// Error(unsupported) where the options name an assembler that cannot be used.
std::optional<Assembler> choose_for_device(const std::string& ptx, int max_cuda,
                                           const AssembleOptions& options, SourceLoc at);
Assembled assemble_with(const Assembler& assembler, const AssembleJob& job, SourceLoc at);
/// "; add the function's PTX ...", for a log about functions without a body; else empty.
std::string remedy_for(const std::string& log);

/// The .version of a PTX text. Throws Error(user) if it has none.
ptx::Version ptx_version(const std::string& ptx, SourceLoc at);
/// The newest PTX version that tools of a CUDA version read: {9, 0} for 13000.
ptx::Version newest_ptx(int cuda_version);
std::string cuda_text(int cuda_version);  ///< "13.0"

}  // namespace tilewright::detail

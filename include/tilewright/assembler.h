// SPDX-License-Identifier: Apache-2.0
// From PTX text to machine code: which assemblers are here, and what one made.
#pragma once

#include "tilewright/error.h"
#include "tilewright/link_input.h"
#include "tilewright/target.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

struct AssembleOptions {
  int opt_level = 3;                      ///< 0 to 3
  bool line_info = false;                 ///< keep .loc in the machine code, for profilers
  std::vector<int> allowed_advisories{};  ///< {7510}: ptxas advisory C7510 is no error
  std::string assembler{};  ///< "nvptxcompiler", "ptxas", "driver"; empty: the first usable
  /// Objects that define extern_function()s. With any, nvJitLink compiles the kernel too, as
  /// relocatable code, which may need more registers; emulated devices refuse it.
  std::vector<LinkInput> link{};
  friend bool operator==(const AssembleOptions&, const AssembleOptions&) = default;
};
/// Everything in the options that changes the machine code, in one line.
std::string canonical_text(const AssembleOptions& options);

/// What one entry needs, as the assembler reports it.
struct EntryResources {
  std::string entry;
  int registers = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int static_smem_bytes = 0;
  int constant_bytes = 0;
  int barriers = 0;
  friend bool operator==(const EntryResources&, const EntryResources&) = default;
};

struct Assembled {
  std::vector<std::byte> bytes;  ///< a cubin; empty where the driver assembles when loading
  std::string assembler{};       ///< "ptxas 13.0.88"
  std::string log;
  std::vector<EntryResources> resources;
  double assemble_ms = 0;
};

/// An assembler that was looked for.
struct AssemblerInfo {
  std::string name;         ///< "nvptxcompiler", "ptxas", "driver"
  std::string version;      ///< "13.0.88"
  std::string path;         ///< file that is opened or run
  ptx::Version newest_ptx;  ///< the newest .version that it reads
  bool usable = false;
  std::string reason;  ///< why it is not usable, and what to do
};
/// In the order in which they are tried. Looks at files and starts `ptxas --version`; remembered
/// until TILEWRIGHT_PTXAS, TILEWRIGHT_NVPTXCOMPILER (a path, or "none") or PATH changes.
std::vector<AssemblerInfo> assemblers();
/// nvJitLink, for AssembleOptions::link.
AssemblerInfo linker();
/// One sentence a skipped assembler; what a test or `doctor` prints where there is none.
std::string why_no_assembler();
bool have_assembler();  ///< one that makes machine code without a GPU

/// Machine code of a whole PTX text, by the first usable assembler. `max_cuda` (13000) is the
/// newest CUDA version whose code is wanted, 0 for any: the device's driver must be able to load
/// it. Throws Error(user) with the assembler's message and line, Error(unsupported) where none is
/// usable.
Assembled assemble(const std::string& ptx, ptx::Target target, const AssembleOptions& options = {},
                   int max_cuda = 0, SourceLoc at = SourceLoc::here());

/// SASS of a cubin by cuobjdump or nvdisasm. Throws Error(unsupported) that names the package which
/// has them where neither is found.
std::string disassemble(std::span<const std::byte> cubin, SourceLoc at = SourceLoc::here());

}  // namespace tilewright

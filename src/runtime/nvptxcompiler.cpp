// SPDX-License-Identifier: Apache-2.0
// The assembler nvPTXCompiler through a plug-in library that is opened when it is first needed.
#include "runtime/plugin/nvptxcompiler.h"

#include "runtime/assemblers.h"
#include "runtime/bind.h"
#include "runtime/process.h"

#include <dlfcn.h>

namespace tilewright::detail {
namespace {

constexpr const char* kFileName = "libtilewright_nvptxcompiler.so";
constexpr const char* kCompilerVariable = "TILEWRIGHT_NVPTXCOMPILER";

struct Plugin {
  decltype(&tilewright_nvptx_version) version = nullptr;
  decltype(&tilewright_nvptx_compile) compile = nullptr;
  decltype(&tilewright_nvptx_free) free = nullptr;
  std::string path;
  std::string problem;
};

Plugin open_plugin(const std::string& path) {
  Plugin plugin{
      .version = nullptr, .compile = nullptr, .free = nullptr, .path = path, .problem = {}};
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    plugin.problem = why == nullptr ? "cannot be opened" : why;
  } else if (!bind(library, plugin.version, "tilewright_nvptx_version") ||
             !bind(library, plugin.compile, "tilewright_nvptx_compile") ||
             !bind(library, plugin.free, "tilewright_nvptx_free")) {
    plugin.problem = path + " is not this library's plug-in";
  }
  return plugin;
}

Plugin find_plugin() {
  std::string chosen = environment(kCompilerVariable);
  if (chosen == "none") {
    Plugin off;
    off.problem = std::string("switched off by ") + kCompilerVariable;
    return off;
  }
  if (!chosen.empty()) return open_plugin(chosen);
  Plugin beside = open_plugin(std::string(TILEWRIGHT_PLUGIN_DIR) + "/" + kFileName);
  if (beside.problem.empty()) return beside;
  Plugin installed = open_plugin(kFileName);
  if (installed.problem.empty()) return installed;
  installed.problem = std::string(kFileName) +
                      " was not found; it is built where the static library is: "
                      "pip install nvidia-nvptxcompiler, then configure and build again";
  return installed;
}

/// Opened once for each value of the variable; never closed, since it keeps threads' state.
const Plugin& plugin() {
  thread_local std::string opened_for = "\n";  // no value of a variable
  thread_local Plugin opened;
  std::string chosen = environment(kCompilerVariable);
  if (opened_for != chosen) {
    opened = find_plugin();
    opened_for = chosen;
  }
  return opened;
}

}  // namespace

Assembler probe_nvptxcompiler() {
  const Plugin& found = plugin();
  Assembler assembler;
  assembler.info.name = "nvptxcompiler";
  assembler.info.path = found.path;
  assembler.info.reason = found.problem;
  if (!found.problem.empty()) return assembler;
  assembler.cuda_version = found.version();
  assembler.info.version = cuda_text(assembler.cuda_version);
  assembler.info.newest_ptx = newest_ptx(assembler.cuda_version);
  assembler.info.usable = true;
  return assembler;
}

AssembleOutput run_nvptxcompiler(const AssembleJob& job) {
  std::string target = "--gpu-name=" + ptx::to_string(job.target);
  std::string level = "--opt-level=" + std::to_string(job.options.opt_level);
  std::vector<const char*> options{target.c_str(), level.c_str(), "--verbose"};
  if (job.options.line_info) options.push_back("--generate-line-info");
  const Plugin& found = plugin();
  TilewrightNvptxResult result{};
  found.compile(job.ptx.c_str(), job.ptx.size() + 1, static_cast<int>(options.size()),
                options.data(), &result);
  AssembleOutput output;
  output.failed = result.status != 0;
  output.log = result.log == nullptr ? "" : result.log;
  if (output.failed && output.log.empty()) {
    output.log = "nvPTXCompileResult " + std::to_string(result.status);
  }
  const auto* data = static_cast<const std::byte*>(result.data);
  if (!output.failed) output.bytes.assign(data, data + result.data_bytes);
  found.free(&result);
  return output;
}

}  // namespace tilewright::detail

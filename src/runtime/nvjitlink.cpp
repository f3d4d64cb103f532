// SPDX-License-Identifier: Apache-2.0
// NVIDIA's linker library nvJitLink, opened when a kernel asks for objects of the user's.
#include "runtime/assemblers.h"
#include "runtime/bind.h"
#include "runtime/process.h"

#include <array>
#include <deque>
#include <dlfcn.h>

namespace tilewright::detail {
namespace {

constexpr const char* kLinkerVariable = "TILEWRIGHT_NVJITLINK";
constexpr std::array kFileNames{"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so",
                                "/usr/local/cuda/lib64/libnvJitLink.so",
                                "/usr/local/cuda/lib/libnvJitLink.so"};

// Values of nvJitLink.h (nvJitLink API reference).
constexpr int kInputPtx = 2;
constexpr int kInputAny = 10;

using Handle = struct NvJitLinkTag*;

struct Library {
  int (*version)(unsigned* major, unsigned* minor) = nullptr;
  int (*create)(Handle* handle, std::uint32_t count, const char** options) = nullptr;
  int (*destroy)(Handle* handle) = nullptr;
  int (*add)(Handle handle, int type, const void* data, std::size_t bytes,
             const char* name) = nullptr;
  int (*complete)(Handle handle) = nullptr;
  int (*cubin_size)(Handle handle, std::size_t* bytes) = nullptr;
  int (*cubin)(Handle handle, void* bytes) = nullptr;
  int (*error_size)(Handle handle, std::size_t* bytes) = nullptr;
  int (*error)(Handle handle, char* text) = nullptr;
  int (*info_size)(Handle handle, std::size_t* bytes) = nullptr;
  int (*info)(Handle handle, char* text) = nullptr;
  std::string path;
  std::string problem;
};

bool bind_all(void* from, Library& to) {
  return bind(from, to.version, "nvJitLinkVersion") && bind(from, to.create, "nvJitLinkCreate") &&
         bind(from, to.destroy, "nvJitLinkDestroy") && bind(from, to.add, "nvJitLinkAddData") &&
         bind(from, to.complete, "nvJitLinkComplete") &&
         bind(from, to.cubin_size, "nvJitLinkGetLinkedCubinSize") &&
         bind(from, to.cubin, "nvJitLinkGetLinkedCubin") &&
         bind(from, to.error_size, "nvJitLinkGetErrorLogSize") &&
         bind(from, to.error, "nvJitLinkGetErrorLog") &&
         bind(from, to.info_size, "nvJitLinkGetInfoLogSize") &&
         bind(from, to.info, "nvJitLinkGetInfoLog");
}

Library open_library() {
  Library library;
  std::string chosen = environment(kLinkerVariable);
  library.problem = std::string("switched off by ") + kLinkerVariable;
  if (chosen == "none") return library;
  std::vector<std::string> names(kFileNames.begin(), kFileNames.end());
  if (!chosen.empty()) names = {chosen};
  library.problem =
      std::string("libnvJitLink.so was not found; pip install nvidia-nvjitlink, and set ") +
      kLinkerVariable + " to its path";
  for (const std::string& name : names) {
    void* opened = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) continue;
    library.path = name;
    library.problem = bind_all(opened, library)
                          ? ""
                          : name + " is older than CUDA 12.3; install a newer nvidia-nvjitlink";
    return library;
  }
  return library;
}

/// Opened once for each value of the variable, and never closed.
const Library& library() {
  thread_local std::string opened_for = "\n";  // no value of a variable
  thread_local Library opened;
  std::string chosen = environment(kLinkerVariable);
  if (opened_for != chosen) {
    opened = open_library();
    opened_for = chosen;
  }
  return opened;
}

std::string log_of(Handle handle, int (*size)(Handle, std::size_t*), int (*read)(Handle, char*)) {
  std::size_t bytes = 0;
  if (size(handle, &bytes) != 0 || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (read(handle, text.data()) != 0) return {};
  return text.substr(0, text.find('\0'));
}

/// The linker's state for one job. nvJitLink 13.0 reads names when it completes: they live as long.
class Linking {
 public:
  Linking(const Library& library, const AssembleJob& job)
      : library_(library),
        target_("-arch=" + ptx::to_string(job.target)),
        level_(job.options.opt_level == 0 ? "-O0" : "-O3") {  // it has no others
    std::vector<const char*> options{target_.c_str(), level_.c_str(), "-Xptxas=-v"};
    if (job.options.line_info) options.push_back("-lineinfo");
    step(library.create(&handle_, static_cast<std::uint32_t>(options.size()), options.data()),
         "nvJitLinkCreate");
  }
  Linking(const Linking&) = delete;
  Linking& operator=(const Linking&) = delete;
  ~Linking() {
    if (handle_ != nullptr) library_.destroy(&handle_);
  }

  void add(int type, std::span<const std::byte> bytes, const std::string& name) {
    names_.push_back(name);
    if (failed_.empty()) {
      step(library_.add(handle_, type, bytes.data(), bytes.size(), names_.back().c_str()), name);
    }
    keep_log();
  }

  AssembleOutput finish() {
    std::size_t bytes = 0;
    if (failed_.empty()) step(library_.complete(handle_), "nvJitLinkComplete");
    if (failed_.empty()) step(library_.cubin_size(handle_, &bytes), "nvJitLinkGetLinkedCubinSize");
    AssembleOutput output;
    output.bytes.resize(bytes);
    if (failed_.empty())
      step(library_.cubin(handle_, output.bytes.data()), "nvJitLinkGetLinkedCubin");
    output.failed = !failed_.empty();
    if (handle_ != nullptr) {
      keep_log();
      output.log =
          output.failed ? log_of(handle_, library_.error_size, library_.error) : earlier_ + newest_;
    }
    if (output.failed && output.log.empty()) output.log = failed_;
    return output;
  }

 private:
  /// Keeps what the log said of earlier inputs: it may hold the newest one alone (seen with CUDA
  /// 13.0 beside a driver).
  void keep_log() {
    if (handle_ == nullptr) return;
    std::string now = log_of(handle_, library_.info_size, library_.info);
    if (!now.starts_with(newest_)) earlier_ += newest_;
    newest_ = std::move(now);
  }
  void step(int result, const std::string& what) {
    if (result != 0) failed_ = what + ": nvJitLinkResult " + std::to_string(result);
  }
  const Library& library_;
  std::string target_, level_;
  std::deque<std::string> names_;  // which stay where they are
  Handle handle_ = nullptr;
  std::string failed_;            // the first step that failed
  std::string earlier_, newest_;  // of the log
};

}  // namespace

Assembler probe_nvjitlink() {
  const Library& found = library();
  Assembler linker;
  linker.info.name = "nvjitlink";
  linker.info.path = found.path;
  linker.info.reason = found.problem;
  if (!found.problem.empty()) return linker;
  unsigned major = 0;
  unsigned minor = 0;
  found.version(&major, &minor);
  linker.cuda_version = static_cast<int>(major * 1000 + minor * 10);
  linker.info.version = cuda_text(linker.cuda_version);
  linker.info.newest_ptx = newest_ptx(linker.cuda_version);
  linker.info.usable = true;
  return linker;
}

namespace {

/// PTX as opposed to machine code, which has zeros.
bool is_ptx(std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  std::string_view all(text, bytes.size());
  return all.find('\0') == all.npos && all.find(".version") != all.npos;
}

}  // namespace

AssembleOutput run_nvjitlink(const AssembleJob& job) {
  Linking linking(library(), job);
  // A zero ends the text.
  linking.add(kInputPtx, std::as_bytes(std::span(job.ptx.c_str(), job.ptx.size() + 1)),
              "the kernel");
  for (const LinkInput& input : job.options.link) {
    std::span<const std::byte> bytes = input.bytes();
    if (!is_ptx(bytes)) {
      linking.add(kInputAny, bytes, input.name());
      continue;
    }
    // A zero has to end it, which the linker would look for beyond the bytes otherwise.
    std::vector<std::byte> text(bytes.begin(), bytes.end());
    text.push_back(std::byte{0});
    linking.add(kInputPtx, text, input.name());
  }
  return linking.finish();
}

}  // namespace tilewright::detail

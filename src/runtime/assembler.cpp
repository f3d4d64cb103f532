// SPDX-License-Identifier: Apache-2.0
// Chooses an assembler, runs it, and turns its words into errors and resources.
#include "tilewright/assembler.h"

#include "runtime/assemblers.h"
#include "runtime/cuda_driver.h"
#include "runtime/process.h"
#include "runtime/ptxas_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <mutex>

namespace tilewright {
namespace detail {
namespace {

constexpr std::array kProbes{probe_nvptxcompiler, probe_ptxas, probe_driver};

/// What was found, remembered while the environment that decides it stays as it is.
class ProbeMemory {
 public:
  Assembler get(std::size_t which) {
    std::lock_guard lock(mutex_);
    std::string now = environment("TILEWRIGHT_PTXAS") + '\n' +
                      environment("TILEWRIGHT_NVPTXCOMPILER") + '\n' + environment("PATH");
    if (now != environment_) {
      found_ = {};
      environment_ = now;
    }
    if (!found_[which]) found_[which] = kProbes[which]();
    return *found_[which];
  }

 private:
  std::mutex mutex_;
  std::string environment_;
  std::array<std::optional<Assembler>, kProbes.size()> found_;
};

Assembler probed(std::size_t which) {
  static ProbeMemory memory;
  return memory.get(which);
}

std::string_view trimmed(std::string_view text) {
  std::size_t from = text.find_first_not_of(" \t\r\n");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

std::string_view line_of(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return trimmed(text.substr(0, text.find('\n')));
}

/// The first error in a log such as "ptxas k.ptx, line 4; error   : Not a name ...": its line of
/// the PTX, that line's text, and the words. The whole log if it has none.
std::string first_error(std::string_view log, std::string_view ptx) {
  for (std::string_view rest = log; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    std::size_t at = line.find(", line ");
    std::size_t semicolon = line.find(';', at == std::string_view::npos ? 0 : at);
    std::size_t colon = line.find(": ", semicolon == std::string_view::npos ? 0 : semicolon);
    if (at == std::string_view::npos || colon == std::string_view::npos) continue;
    int number = 0;
    std::from_chars(line.data() + at + 7, line.data() + line.size(), number);
    std::string text = "PTX line " + std::to_string(number);
    std::string_view source = line_of(ptx, number);
    if (!source.empty()) text += " \"" + std::string(source) + "\"";
    return text + ": " + std::string(trimmed(line.substr(colon + 2)));
  }
  return std::string(trimmed(log));
}

std::string unfit(const Assembler& assembler, ptx::Version ptx, int max_cuda) {
  if (!assembler.info.usable) return assembler.info.reason;
  if (assembler.info.newest_ptx < ptx) {
    return assembler.info.version + " reads PTX up to " + to_string(assembler.info.newest_ptx) +
           ", this is " + to_string(ptx);
  }
  if (max_cuda != 0 && assembler.cuda_version / 10 > max_cuda / 10) {
    return assembler.info.version + " is newer than the driver, which is for CUDA " +
           cuda_text(max_cuda);
  }
  return {};
}

}  // namespace

std::string cuda_text(int cuda_version) {
  return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
}

ptx::Version newest_ptx(int cuda_version) {
  // PTX ISA manual, release notes: 11.0 to 11.8 read 7.0 to 7.8; 12.0 to 12.5 read 8.0 to 8.5;
  // 12.6 reads 8.5, 12.7 to 12.9 read 8.6 to 8.8; 13.x reads 9.x.
  int major = cuda_version / 1000;
  int minor = cuda_version % 1000 / 10;
  if (major < 11) return {6, 5};
  if (major == 12 && minor >= 6) return {8, minor - 1};
  return {major - 4, minor};
}

ptx::Version ptx_version(const std::string& ptx, SourceLoc at) {
  std::size_t from = 0;
  while ((from = ptx.find(".version", from)) != std::string::npos) {
    std::size_t line = ptx.rfind('\n', from);
    std::size_t begin = line == std::string::npos ? 0 : line + 1;
    if (trimmed(std::string_view(ptx).substr(begin, from - begin)).empty()) break;
    from += 8;
  }
  ptx::Version version;
  if (from != std::string::npos) {
    const char* end = ptx.data() + ptx.size();
    const char* digits =
        std::find_if(ptx.data() + from + 8, end, [](char c) { return c != ' ' && c != '\t'; });
    auto [dot, error] = std::from_chars(digits, end, version.major);
    if (error == std::errc() && dot != end && *dot == '.' &&
        std::from_chars(dot + 1, end, version.minor).ec == std::errc()) {
      return version;
    }
  }
  throw Error(ErrorKind::user, "assemble: the text has no line '.version X.Y'; is it PTX?", at);
}

Assembler probe_driver() {
  const cuda::Driver& driver = cuda::driver();
  Assembler assembler;
  assembler.info.name = "driver";
  assembler.info.path = "libcuda.so.1";
  assembler.info.reason = driver.problem;
  assembler.info.usable = driver.problem.empty();
  assembler.cuda_version = driver.version;
  if (driver.version > 0) {
    assembler.info.version = cuda_text(driver.version);
    assembler.info.newest_ptx = newest_ptx(driver.version);
  }
  return assembler;
}

namespace {

AssemblerChoice choose_linker(ptx::Version ptx, int max_cuda, const std::string& name) {
  Assembler linker = probe_nvjitlink();
  std::string reason =
      name.empty() ? unfit(linker, ptx, max_cuda) : "links, and options.assembler asks for " + name;
  if (reason.empty()) return {linker, {}};
  return {std::nullopt, linker.info.name + ": " + reason};
}

}  // namespace

AssemblerChoice choose_assembler(ptx::Version ptx, int max_cuda, const AssembleOptions& options) {
  const std::string& name = options.assembler;
  if (!options.link.empty()) return choose_linker(ptx, max_cuda, name);
  AssemblerChoice choice;
  for (std::size_t i = 0; i + 1 < kProbes.size();
       ++i) {  // the driver makes no machine code to keep
    Assembler assembler = probed(i);
    std::string reason = !name.empty() && name != assembler.info.name
                             ? "not the one that was asked for"
                             : unfit(assembler, ptx, max_cuda);
    if (reason.empty()) {
      choice.chosen = assembler;
      return choice;
    }
    choice.reasons += (choice.reasons.empty() ? "" : "; ") + assembler.info.name + ": " + reason;
  }
  return choice;
}

namespace {

[[noreturn]] void fail_without_assembler(const std::string& reasons, SourceLoc at) {
  throw Error(ErrorKind::unsupported,
              "assemble: no assembler can be used (" + reasons +
                  "); pip install nvidia-cuda-nvcc, or run the kernel on an emulated device",
              at);
}

void refuse_multimem(const std::string& ptx, SourceLoc at) {
  if (ptx.find("multimem.") == std::string::npos) return;
  throw Error(ErrorKind::unsupported,
              "assemble: the kernel has multimem instructions, which this library does not run on "
              "GPUs: it makes no multicast memory there; use emulated devices",
              at);
}

}  // namespace

std::optional<Assembler> choose_for_device(const std::string& ptx, int max_cuda,
                                           const AssembleOptions& options, SourceLoc at) {
  refuse_multimem(ptx, at);
  bool links = !options.link.empty();
  if (options.assembler == "driver" && !links) return std::nullopt;
  AssemblerChoice choice = choose_assembler(ptx_version(ptx, at), max_cuda, options);
  bool only_these = links || !options.assembler.empty();
  if (!choice.chosen && only_these) fail_without_assembler(choice.reasons, at);
  return choice.chosen;
}

namespace {

AssembleOutput run(const Assembler& assembler, const AssembleJob& job) {
  if (assembler.info.name == "nvjitlink") return run_nvjitlink(job);
  if (assembler.info.name == "ptxas") return run_ptxas(assembler.info.path, job);
  return run_nvptxcompiler(job);
}

}  // namespace

std::string remedy_for(const std::string& log) {
  bool undefined = log.find("Unresolved extern function") != std::string::npos ||
                   log.find("Undefined reference") != std::string::npos;
  if (!undefined) return {};
  return "; add the function's PTX with include_ptx, or its object to AssembleOptions::link";
}

Assembled assemble_with(const Assembler& assembler, const AssembleJob& job, SourceLoc at) {
  auto start = std::chrono::steady_clock::now();
  AssembleOutput output = run(assembler, job);
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  std::string id = assembler.info.name + " " + assembler.info.version;
  if (output.failed) {
    throw Error(
        ErrorKind::user,
        "assemble: " + id + ": " + first_error(output.log, job.ptx) + remedy_for(output.log), at);
  }
  refuse_advisories(output.log, job.options.allowed_advisories, at);
  std::vector<EntryResources> resources = parse_resources(output.log);
  return {.bytes = std::move(output.bytes),
          .assembler = std::move(id),
          .log = std::move(output.log),
          .resources = std::move(resources),
          .assemble_ms = elapsed.count()};
}

}  // namespace detail

std::string canonical_text(const AssembleOptions& options) {
  std::string text = "O" + std::to_string(options.opt_level);
  if (options.line_info) text += " lineinfo";
  for (int number : options.allowed_advisories)
    text += " C" + std::to_string(number);
  if (!options.assembler.empty()) text += " " + options.assembler;
  for (const LinkInput& input : options.link)
    text += " link " + input.digest();
  return text;
}

std::vector<AssemblerInfo> assemblers() {
  std::vector<AssemblerInfo> infos;
  for (std::size_t i = 0; i < detail::kProbes.size(); ++i)
    infos.push_back(detail::probed(i).info);
  return infos;
}

AssemblerInfo linker() { return detail::probe_nvjitlink().info; }

std::string why_no_assembler() {
  std::string text;
  for (const AssemblerInfo& info : assemblers()) {
    if (!info.usable) text += (text.empty() ? "" : "; ") + info.name + ": " + info.reason;
  }
  return text;
}

bool have_assembler() { return detail::choose_assembler({1, 0}, 0, {}).chosen.has_value(); }

Assembled assemble(const std::string& ptx, ptx::Target target, const AssembleOptions& options,
                   int max_cuda, SourceLoc at) {
  detail::AssemblerChoice choice =
      detail::choose_assembler(detail::ptx_version(ptx, at), max_cuda, options);
  if (!choice.chosen) detail::fail_without_assembler(choice.reasons, at);
  return detail::assemble_with(*choice.chosen, {ptx, target, options}, at);
}

}  // namespace tilewright

// SPDX-License-Identifier: Apache-2.0
// The checked PTX emulator: a device in host memory that runs a ptx::Module and reports what is
// wrong.
#pragma once

#include "tilewright/diagnostic.h"
#include "tilewright/target.h"
#include "tilewright/tensor_map.h"
#include "tilewright/type.h"

namespace tilewright::ptx {
struct Module;
}  // namespace tilewright::ptx

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::emu {

/// The kinds of findings that are looked for; `limit` and what stops a thread are always reported.
struct Checks {
  std::uint32_t bits = ~(1U << static_cast<int>(Kind::overtaken_read));
  bool has(Kind kind) const { return (bits >> static_cast<int>(kind) & 1) != 0; }
  static Checks all() { return {}; }
  static Checks none() { return {0}; }
};
/// Reads "all", "none", "race,unordered" or "all,overtaken_read": all leaves out the last kind.
/// Throws Error(user) that lists the kinds.
Checks parse_checks(std::string_view text);

enum class Residency : std::uint8_t { all, estimate, one };          ///< blocks alive at a time
enum class Delivery : std::uint8_t { late, eager, random };          ///< of asynchronous copies
enum class Divergence : std::uint8_t { converge, maximal, random };  ///< when splits merge
enum class Counting : std::uint8_t { off, on };
std::string_view name(Residency residency);
std::string_view name(Delivery delivery);
std::string_view name(Divergence divergence);

/// What untrusted PTX may use; reaching one is a finding of kind `limit`.
struct Limits {
  std::int64_t memory_bytes = std::int64_t{1} << 33;  ///< host memory for what kernels touch
  std::uint64_t steps = std::uint64_t{1} << 40;       ///< warp instructions of a launch
  std::uint64_t idle_steps = std::uint64_t{1} << 22;  ///< of one warp in loops that change nothing
  std::int64_t output_bytes = std::int64_t{1} << 20;  ///< of printf
  int findings = 100;                                 ///< distinct findings kept
};

struct Schedule;

struct Options {
  Checks checks;
  std::uint64_t seed = 0;
  Residency residency = Residency::estimate;
  Delivery delivery = Delivery::late;
  Divergence divergence = Divergence::converge;
  Limits limits;
  Counting counters = Counting::off;
  const Schedule* replay = nullptr;  ///< decides instead of the seed; see tilewright/replay.h
  Schedule* record = nullptr;        ///< is given what was decided
  /// Called every few thousand steps with the blocks finished so far; false stops the launch, and
  /// the report tells what is known.
  bool (*keep_going)(void* context, std::uint64_t blocks_done) = nullptr;
  void* keep_going_context = nullptr;
};

namespace detail {
struct Code;
struct Device;
struct Memory;
}  // namespace detail

/// A module decoded for one machine: a cheap handle, valid while the machine lives and until
/// unload().
struct Program {
  const detail::Code* code = nullptr;
};

/// Where a parameter lies in a packed parameter block.
struct ParamSlot {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  Type type = Type::b8;
};
/// The parameters of an entry. Throws Error(user) if there is no such entry.
std::vector<ParamSlot> parameters(const Program& program, std::string_view entry);

/// Which launches have ended before another begins: the order that streams, events and host waits
/// make. Launches run one after another all the same; what is unordered is reported as a race.
struct LaunchOrder {
  std::uint32_t stream = 0;          ///< a number for it; its launches are ordered
  std::vector<std::uint64_t> known;  ///< by stream: the launches of it that have ended before
  bool dependent = false;  ///< knows of the one in front of it only behind griddepcontrol.wait
};

struct Launch {
  Program program;
  std::string entry;
  Dim3 grid, block, cluster;
  std::int64_t dynamic_smem_bytes = 0;
  bool cooperative = false;
  std::vector<std::byte> params;          ///< packed by the offsets of parameters()
  std::optional<LaunchOrder> order = {};  ///< none: everything before it has ended
};

/// One instruction's counts. An "ideal" is what the same bytes need when perfectly arranged.
struct InstrCount {
  std::uint32_t ptx_line = 0;
  SourceLine source;
  std::string instruction;
  std::uint64_t executions = 0;  ///< warp instructions
  std::uint64_t divergent = 0;   ///< executions with some live lane of the warp elsewhere
  std::uint64_t lanes = 0;       ///< thread instructions
  std::uint64_t sectors = 0, ideal_sectors = 0;        ///< 32-byte sectors of global accesses
  std::uint64_t wavefronts = 0, ideal_wavefronts = 0;  ///< of shared accesses (bank conflicts)
};

struct Counters {
  std::vector<InstrCount> instructions;  ///< executed ones, by PTX line
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
  std::uint64_t global_read_bytes = 0, global_written_bytes = 0;
  std::uint64_t shared_read_bytes = 0, shared_written_bytes = 0;
  std::uint64_t local_bytes = 0, async_bytes = 0, atomics = 0;
  std::uint64_t tensor_ops = 0;  ///< multiply-adds of mma, wmma, wgmma, times two
};

struct LaunchReport {
  std::vector<Diagnostic> findings;  ///< in the order found
  Counters counters;                 ///< empty unless Options::counters
  std::string output;                ///< of vprintf
  std::uint64_t steps = 0;           ///< warp instructions executed
  bool completed = false;            ///< every block ran to its end
  bool ok() const;                   ///< completed, and nothing above `advice` was found
};

/// An address space that several machines share; it must outlive them.
class Fabric;

/// What a device is made of.
struct MachineOptions {
  Fabric* fabric =
      nullptr;  ///< machines with the same fabric reach each other's memory; null: its own
  int multiprocessors = 4;  ///< for Residency::estimate and %nsmid
};

/// One emulated device: its memory, and launches in stream order.
class Machine {
 public:
  explicit Machine(ptx::Target target, MachineOptions options = {});
  ~Machine();
  Machine(Machine&&) noexcept;
  Machine& operator=(Machine&&) noexcept;

  ptx::Target target() const;

  /// A device address, 512-byte aligned; uninitialised. Costs memory only where touched.
  std::uint64_t allocate(std::int64_t bytes, std::string label = {});
  /// Throws Error(user) unless `address` came from allocate() and was not freed.
  void free(std::uint64_t address);
  /// Host access. Throws Error(user) outside an allocation. Bytes never written read as 0.
  void write(std::uint64_t address, std::span<const std::byte> bytes);
  void read(std::uint64_t address, std::span<std::byte> bytes) const;
  /// The bytes keep what is in them, but a kernel that reads them before one writes them is
  /// reported, as if they were fresh from allocate().
  void forget(std::uint64_t address, std::int64_t bytes);
  /// `bytes` bytes of `pattern` (1, 2 or 4 bytes wide), without touching what is already so.
  void fill(std::uint64_t address, std::int64_t bytes, std::uint32_t pattern, int width = 1);
  void copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes);

  /// Decodes a module and allocates its global variables.
  /// Throws Error(unsupported) naming line and instruction for what this target does not have.
  Program load(const ptx::Module& module);
  /// Frees the program and its global variables.
  void unload(Program program);
  /// The address of a .global or .const variable. Throws Error(user) if there is none.
  std::uint64_t address_of(const Program& program, std::string_view variable) const;

  /// Runs one grid to its end. Throws Error(user) for an impossible launch (no such entry, block
  /// too large, parameters of another size); defects of the kernel are findings.
  LaunchReport launch(const Launch& launch, const Options& options = {});

  detail::Device& device() const { return *device_; }

 private:
  detail::Device* device_;  ///< owned
};

class Fabric {
 public:
  Fabric();
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// A multicast address of the same `bytes` in several allocations: what multimem instructions
  /// take; others may not. Throws Error(user) unless each member lies in an allocation.
  std::uint64_t multicast(std::span<const std::uint64_t> members, std::int64_t bytes);

  detail::Memory& memory() const { return *memory_; }

 private:
  detail::Memory* memory_;  ///< owned
};

/// What a kernel on an emulated device is given where a GPU has a CUtensorMap, in an encoding of
/// our own. Throws Error(user) as check_tensor_map.
EncodedTensorMap encode_tensor_map(const TensorMap& map, SourceLoc at = SourceLoc::here());

/// A grid on one of several machines of a fabric.
struct Work {
  Machine* machine = nullptr;
  Launch launch;
};
/// Runs grids on different machines interleaved, as concurrent kernels run; one report each.
std::vector<LaunchReport> launch_together(std::span<const Work> work, const Options& options = {});

/// One buffer of a case that was compared with its expected bytes.
struct CaseBuffer {
  int arg = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t elements = 0;
  std::string first_difference;  ///< empty if none
};
struct CaseResult {
  LaunchReport report;
  std::vector<CaseBuffer> buffers;
  bool outputs_match = false;
};
/// Runs a `.case` manifest beside its buffers on `ptx_text`. Throws Error(user) for a bad manifest.
CaseResult run_case(const std::string& case_path, std::string_view ptx_text,
                    std::string_view ptx_name, const Options& options = {});

}  // namespace tilewright::emu

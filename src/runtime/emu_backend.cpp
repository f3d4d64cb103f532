// SPDX-License-Identifier: Apache-2.0
// The emulator as a device: memory, streams, events, graphs and launches.
#include "runtime/emu_backend.h"

#include "runtime/host_memory.h"
#include "tilewright/module.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace tilewright::detail {
namespace {

using Clock = std::chrono::steady_clock;
struct EventState {
  std::optional<Clock::time_point> time;
  KnownLaunches known;
  const StreamOrder* order = nullptr;  ///< in which `known` means something
};

struct EmuKernel : LoadedKernel {
  using LoadedKernel::LoadedKernel;
  ~EmuKernel() override {
    if (program.code != nullptr) static_cast<EmuBackend&>(backend).machine.unload(program);
  }
  emu::Program program;
};

struct EmuGraph : GraphState {
  using GraphState::GraphState;
  std::vector<std::function<void(void*)>> work;
};

struct SmemLimits {
  int sm;  ///< this compute capability and those up to the next row
  int per_block_bytes;
  int per_sm_bytes;
  int threads_per_sm;
};
// CUDA Programming Guide, technical specifications per compute capability.
constexpr SmemLimits kSmemLimits[] = {
    {0, 65'536, 65'536, 1024},     {80, 166'912, 167'936, 2048}, {86, 101'376, 102'400, 1536},
    {87, 166'912, 167'936, 1536},  {88, 101'376, 102'400, 1536}, {90, 232'448, 233'472, 2048},
    {120, 101'376, 102'400, 1536},
};

SmemLimits smem_limits(int sm) {
  SmemLimits found = kSmemLimits[0];
  for (const SmemLimits& row : kSmemLimits) {
    if (sm >= row.sm) found = row;
  }
  return found;
}

DeviceProperties emulated_properties(ptx::Target target) {
  SmemLimits limits = smem_limits(target.sm);
  return {.name = "emulator",
          .target = target,
          .sm_count = emu::MachineOptions{}.multiprocessors,
          .driver_version = 0,
          .max_threads_per_sm = limits.threads_per_sm,
          .smem_per_block_bytes = limits.per_block_bytes,
          .smem_per_sm_bytes = limits.per_sm_bytes,
          .registers_per_sm = 65'536,
          .l2_bytes = 0,
          .memory_bytes = 0,
          .memory_clock_khz = 0,
          .memory_bus_bits = 0};
}

std::int64_t shared_bytes(const std::vector<ptx::Variable>& variables, std::int64_t from) {
  std::int64_t end = from;
  for (const ptx::Variable& variable : variables) {
    if (variable.space != ptx::Space::shared || variable.linkage == ptx::Linkage::extern_) continue;
    std::int64_t alignment = std::max(ptx::alignment_bytes(variable), 1);
    end = (end + alignment - 1) / alignment * alignment + ptx::size_bytes(variable);
  }
  return end;
}

int product(const std::array<int, 3>& extents) {
  return extents[0] * std::max(extents[1], 1) * std::max(extents[2], 1);
}

void read_attributes(const ptx::Module& module, const ptx::Function& entry,
                     KernelAttributes& attributes) {
  attributes.static_smem_bytes = shared_bytes(entry.variables, shared_bytes(module.variables, 0));
  int most = product(entry.tuning.reqntid) > 0 ? product(entry.tuning.reqntid)
                                               : product(entry.tuning.maxntid);
  if (most > 0) attributes.max_threads_per_block = std::min(most, 1024);
}

emu::Dim3 emu_extents(const Dim3& from) {
  return {static_cast<std::uint32_t>(from.x), static_cast<std::uint32_t>(from.y),
          static_cast<std::uint32_t>(from.z)};
}

EventState& event_state(void* event) { return *static_cast<EventState*>(event); }

}  // namespace

EmuBackend::EmuBackend(ptx::Target target, std::shared_ptr<EmuShared> shared)
    : Backend(DeviceKind::emulated, "emu:" + ptx::to_string(target)),
      shared_(std::move(shared)),
      machine(target, {.fabric = &shared_->fabric}),
      order_(shared_->order),
      default_stream_(order_.add_device()),
      copies_(machine) {
  properties = emulated_properties(target);
}

EmuBackend::~EmuBackend() { kernels.reset(); }

MemoryInfo EmuBackend::memory() {
  return {.free_bytes = options.limits.memory_bytes, .total_bytes = options.limits.memory_bytes};
}

void EmuBackend::host_waits() { order_.host_waits(order_.recorded(default_stream_)); }

void EmuBackend::synchronize(SourceLoc) { host_waits(); }

DeviceAddress EmuBackend::allocate(std::int64_t bytes, SourceLoc) {
  return machine.allocate(bytes);
}

void EmuBackend::free(DeviceAddress address) noexcept {
  host_waits();
  machine.free(address);
}

void EmuBackend::upload(DeviceAddress to, std::span<const std::byte> from, SourceLoc at) {
  require_host_bytes(static_cast<std::int64_t>(from.size()), "emulator: uploading", at);
  host_waits();
  machine.write(to, from);
}

void EmuBackend::download(std::span<std::byte> to, DeviceAddress from, SourceLoc) {
  host_waits();
  machine.read(from, to);
}

EmuBackend::StreamState* EmuBackend::find_stream(void* handle) {
  auto found = std::find_if(streams_.begin(), streams_.end(),
                            [&](const auto& stream) { return stream.get() == handle; });
  return found == streams_.end() ? nullptr : found->get();
}

std::uint32_t EmuBackend::number_of(void* stream) {
  const StreamState* state = find_stream(stream);
  return state == nullptr ? default_stream_ : state->number;
}

void EmuBackend::queue(void* stream, Work work) {
  StreamState* state = find_stream(stream);
  if (state == nullptr || state->capture == 0) return work(stream);
  state->captured.push_back(std::move(work));
}

void EmuBackend::check_copy(const CopiedBytes& copied, void* stream) {
  if (!order_.has_several()) return;
  const auto found = copies_.check(copied, order_.copy(number_of(stream)), options);
  findings.insert(findings.end(), found.begin(), found.end());
}

void EmuBackend::copy_to_device(DeviceAddress to, std::span<const std::byte> from, void* stream) {
  queue(stream, [this, to, from](void* on) {
    check_copy({0, to, static_cast<std::int64_t>(from.size())}, on);
    machine.write(to, from);
  });
}

void EmuBackend::copy_to_host(std::span<std::byte> to, DeviceAddress from, void* stream) {
  queue(stream, [this, to, from](void* on) {
    check_copy({from, 0, static_cast<std::int64_t>(to.size())}, on);
    machine.read(from, to);
  });
}

void EmuBackend::copy_on_device(DeviceAddress to, DeviceAddress from, std::int64_t bytes,
                                void* stream) {
  queue(stream, [this, to, from, bytes](void* on) {
    check_copy({from, to, bytes}, on);
    machine.copy(to, from, bytes);
  });
}

void EmuBackend::fill(DeviceAddress to, std::byte value, std::int64_t bytes, void* stream) {
  queue(stream, [this, to, value, bytes](void* on) {
    check_copy({0, to, bytes}, on);
    machine.fill(to, bytes, std::to_integer<std::uint32_t>(value));
    if (!order_.has_several() || bytes > CopyChecker::kMostBytes) return;
    // A fill of a whole allocation forgets the accesses to it: this one is noted anew.
    copies_.check({0, to, bytes}, order_.copy(number_of(on)), options);
    machine.write(to, std::vector<std::byte>(static_cast<std::size_t>(bytes), value));
  });
}

void* EmuBackend::create_stream() {
  streams_.push_back(std::make_unique<StreamState>());
  streams_.back()->number = order_.add_stream(default_stream_);
  return streams_.back().get();
}

void EmuBackend::destroy_stream(void* stream) noexcept {
  std::erase_if(streams_, [&](const auto& state) { return state.get() == stream; });
}

void EmuBackend::refuse_in_capture(void* stream, const char* call) {
  StreamState* state = find_stream(stream);
  if (state == nullptr || state->capture == 0) return;
  throw Error(ErrorKind::user,
              std::string(call) + ": the stream is being captured into a graph; end that first");
}

void EmuBackend::synchronize_stream(void* stream) {
  refuse_in_capture(stream, "synchronize");
  order_.host_waits(order_.recorded(number_of(stream)));
}

bool EmuBackend::stream_done(void* stream) {
  refuse_in_capture(stream, "done");
  order_.host_waits(order_.recorded(number_of(stream)));
  return true;
}

/// Work is over when it has been queued; what remains is the order that the wait makes.
void EmuBackend::stream_wait(void* stream, void* event) {
  queue(stream, [this, event](void* on) {
    const EventState& state = event_state(event);
    if (state.order != &order_) return;  // of a device whose memory this one cannot reach
    order_.stream_waits(number_of(on), state.known);
  });
}

void* EmuBackend::create_event() { return new EventState; }

void EmuBackend::destroy_event(void* event) noexcept { delete &event_state(event); }

void EmuBackend::record_event(void* event, void* stream) {
  queue(stream, [this, event](void* on) {
    event_state(event) = {Clock::now(), order_.recorded(number_of(on)), &order_};
  });
}

void EmuBackend::synchronize_event(void* event) {
  if (event_state(event).order == &order_) order_.host_waits(event_state(event).known);
}

double EmuBackend::elapsed_ms(void* start, void* end) {
  const auto &from = event_state(start).time, &to = event_state(end).time;
  if (!from || !to) {
    throw Error(ErrorKind::user, "elapsed_ms: an event was not recorded; call record first");
  }
  return std::chrono::duration<double, std::milli>(*to - *from).count();
}

Ref<LoadedKernel> EmuBackend::load(LoadRequest request, SourceLoc at) {
  if (!request.options.link.empty()) {
    throw Error(ErrorKind::unsupported,
                "load: " + id + " cannot run the machine code of " +
                    request.options.link.front().name() +
                    "; give the functions as PTX with include_ptx",
                at);
  }
  ptx::Module module = ptx::parse(request.ptx, request.entry + ".ptx");
  const ptx::Function* entry = module.find_function(request.entry);
  if (entry == nullptr || !entry->entry) {
    throw Error(ErrorKind::user, "load: the PTX has no entry '" + request.entry + "'", at);
  }
  auto* kernel = new EmuKernel(*this, std::move(request));
  Ref<LoadedKernel> loaded(kernel);
  read_attributes(module, *entry, kernel->attributes);
  kernel->program = machine.load(module);
  std::int64_t parameter_bytes = 0;
  for (const emu::ParamSlot& slot : emu::parameters(kernel->program, kernel->source.entry)) {
    parameter_bytes = std::max(parameter_bytes, slot.offset + slot.bytes);
  }
  kernel->attributes.parameter_bytes = parameter_bytes;
  kernel->source.assembled.assembler = "emulator";
  return loaded;
}

int EmuBackend::blocks_per_sm(const LoadedKernel& kernel, int threads, std::int64_t smem_bytes) {
  std::int64_t by_threads = properties.max_threads_per_sm / std::max(threads, 1);
  // Every block also has 1 KiB of the system's. CUDA Programming Guide, shared memory of 9.0.
  std::int64_t block_smem = kernel.attributes.static_smem_bytes + smem_bytes + 1024;
  return static_cast<int>(std::min(by_threads, properties.smem_per_sm_bytes / block_smem));
}

int EmuBackend::active_clusters(const LoadedKernel& kernel, const LaunchConfig& config) {
  std::int64_t blocks =
      blocks_per_sm(kernel, static_cast<int>(count(config.block)), config.dynamic_smem_bytes);
  return static_cast<int>(blocks * properties.sm_count / count(config.cluster));
}

Ref<LaunchState> EmuBackend::prepare(const Kernel& kernel, const LaunchConfig& config,
                                     Parameters parameters, SourceLoc) {
  return Ref<LaunchState>(new LaunchState(kernel, config, std::move(parameters)));
}

EncodedTensorMap EmuBackend::encode(const TensorMap& map, SourceLoc at) {
  return emu::encode_tensor_map(map, at);
}

namespace {
emu::Launch emu_launch(const LaunchState& state) {
  const auto& kernel = static_cast<const EmuKernel&>(state.kernel.loaded());
  std::span<const std::byte> bytes = state.parameters.bytes();
  return {.program = kernel.program,
          .entry = kernel.source.entry,
          .grid = emu_extents(state.config.grid),
          .block = emu_extents(state.config.block),
          .cluster = emu_extents(state.config.cluster),
          .dynamic_smem_bytes = state.config.dynamic_smem_bytes,
          .cooperative = state.config.cooperative,
          .params = {bytes.begin(), bytes.end()}};
}
}  // namespace

void EmuBackend::keep(emu::LaunchReport report) {
  last_report = std::move(report);
  findings.insert(findings.end(), last_report.findings.begin(), last_report.findings.end());
}

void EmuBackend::launch(LaunchState& state, void* stream, SourceLoc) {
  // A graph keeps the kernel loaded.
  const bool dependent = state.config.dependent;
  queue(stream,
        [this, launch = emu_launch(state), dependent, kept = state.kernel](void* on) mutable {
          launch.order = order_.launch(number_of(on), dependent);
          keep(machine.launch(launch, options));
        });
}

void EmuBackend::launch_together(std::span<const Together> work, SourceLoc at) {
  std::vector<emu::Work> grids;
  std::vector<EmuBackend*> owners;
  for (const Together& one : work) {
    auto& owner = as_emulator(one.state->kernel.device().backend(), "launch_together", at);
    if (!owners.empty() && owner.shared_ != owners[0]->shared_) {
      throw Error(ErrorKind::user,
                  "launch_together: the emulated devices have different memories; open them with "
                  "open_peers",
                  at);
    }
    owner.refuse_in_capture(one.stream, "launch_together");
    owners.push_back(&owner);
    grids.push_back({&owner.machine, emu_launch(*one.state)});
    grids.back().launch.order = owner.order_.launch(owner.number_of(one.stream), false);
  }
  std::vector<emu::LaunchReport> reports = emu::launch_together(grids, owners[0]->options);
  for (std::size_t i = 0; i < owners.size(); ++i)
    owners[i]->keep(std::move(reports[i]));
}

std::uint64_t EmuBackend::capture_id(void* stream) {
  const StreamState* state = find_stream(stream);
  return state == nullptr ? 0 : state->capture;
}

void EmuBackend::begin_capture(void* stream) {
  StreamState* state = find_stream(stream);
  if (state == nullptr) {
    throw Error(ErrorKind::user, "graph capture: " + id + " has no such stream");
  }
  if (state->capture != 0) {
    throw Error(ErrorKind::user, "graph capture: the stream is being captured already");
  }
  state->capture = ++captures_;
}

Ref<GraphState> EmuBackend::end_capture(const Device& device, void* stream) {
  auto* graph = new EmuGraph(device);
  Ref<GraphState> state(graph);
  graph->work = std::move(find_stream(stream)->captured);
  graph->nodes = static_cast<int>(graph->work.size());
  abandon_capture(stream);
  return state;
}

void EmuBackend::abandon_capture(void* stream) noexcept {
  StreamState* state = find_stream(stream);
  if (state == nullptr) return;
  state->capture = 0;
  state->captured.clear();
}

void EmuBackend::launch_graph(GraphState& graph, void* stream) {
  for (const Work& work : static_cast<EmuGraph&>(graph).work)
    queue(stream, work);
}

Ref<Backend> open_emulator(ptx::Target target, std::shared_ptr<EmuShared> shared) {
  if (shared == nullptr) shared = std::make_shared<EmuShared>();
  return Ref<Backend>(new EmuBackend(target, std::move(shared)));
}

EmuBackend& as_emulator(Backend& backend, const char* what, SourceLoc at) {
  if (backend.kind == DeviceKind::emulated) return static_cast<EmuBackend&>(backend);
  throw Error(ErrorKind::user, std::string(what) + ": " + backend.id + " is not an emulated device",
              at);
}

}  // namespace tilewright::detail

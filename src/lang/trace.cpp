// SPDX-License-Identifier: Apache-2.0
// Parameters of a trace: what is known of arguments, how they become registers, how launches fit.
#include "tilewright/trace.h"

#include "lang/facts.h"
#include "lang/tracer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace tilewright {

using lang::Tracer;

namespace {

constexpr int kTensorMapBytes = 128;     // CUtensorMap, CUDA driver API
constexpr int kTensorMapAlignment = 64;  // the same
constexpr int kMaxAlignmentBytes = 16;   // the widest access of a thread

std::int64_t power_of_two_divisor(std::int64_t n, std::int64_t most) {
  if (n == 0) return most;
  return std::min(most, n & -n);
}

/// Extents up to 2^30 are 32-bit, so that indices a tile beyond the end do not wrap.
constexpr std::int64_t kMaxShortExtent = std::int64_t{1} << 30;

IntFacts extent_facts(std::int64_t extent) {
  bool is_short = extent <= kMaxShortExtent;
  return {1, 0, is_short ? kMaxShortExtent : std::numeric_limits<std::int64_t>::max() / 16};
}

IntFacts stride_facts(std::int64_t stride, std::int64_t divisor) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 1024;
  std::int64_t least = stride < 0 ? -(kMost / divisor * divisor) : 0;
  return {divisor, least, kMost / divisor * divisor};
}

bool holds(const Int& leaf, std::int64_t value) {
  if (leaf.is_static()) return leaf.value() == value;
  return value >= leaf.min() && value <= leaf.max() && leaf.divisible_by(1) &&
         value % leaf.divisor() == 0;
}

}  // namespace

TensorArg tensor_arg(const View& view, DynamicModes dynamic) {
  TensorArg arg;
  arg.type = view.type;
  arg.alignment_bytes = static_cast<int>(
      power_of_two_divisor(static_cast<std::int64_t>(view.address & 0xff), kMaxAlignmentBytes));
  std::int64_t elems = std::max<std::int64_t>(1, kMaxAlignmentBytes * 8 / storage_bits(view.type));
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  for (int i = 0; i < view.rank; ++i) {
    auto mode = static_cast<std::size_t>(i);
    std::int64_t extent = view.shape[mode];
    std::int64_t step = view.stride[mode];
    bool free_extent = (dynamic.extents >> i & 1u) != 0;
    bool free_stride = (dynamic.strides >> i & 1u) != 0;
    Int e = free_extent ? Int::symbol(0, extent_facts(extent)) : Int(extent);
    Int s = free_stride ? Int::symbol(0, stride_facts(step, power_of_two_divisor(step, elems)))
                        : Int(step);
    shape.emplace_back(e);
    stride.emplace_back(s);
  }
  arg.shape = IntTuple::tuple(std::move(shape));
  arg.stride = IntTuple::tuple(std::move(stride));
  return arg;
}

std::string to_string(const TensorArg& arg) {
  std::string text = std::string(name(arg.type)) + " " + to_string(arg.shape) + ":" +
                     to_string(arg.stride) + " align=" + std::to_string(arg.alignment_bytes);
  // Bounds that are not the usual ones belong to the key too.
  for (int i = 0; i < arg.shape.rank(); ++i) {
    const Int& extent = arg.shape[i].value();
    const Int& stride = arg.stride[i].value();
    if (!extent.is_static()) text += extent.max() > kMaxShortExtent ? " long" : "";
    if (!stride.is_static()) text += stride.min() < 0 ? " signed" : "";
  }
  return text;
}

bool is_short_extent(const Int& extent) { return extent.max() <= kMaxShortExtent; }

std::string mismatch(const TensorArg& arg, const View& view) {
  if (view.type != arg.type) {
    return "the type is " + std::string(name(view.type)) + ", the kernel was made for " +
           std::string(name(arg.type));
  }
  if (view.rank != arg.shape.rank()) {
    return "the rank is " + std::to_string(view.rank) + ", the kernel was made for " +
           std::to_string(arg.shape.rank());
  }
  if (view.address % static_cast<std::uint64_t>(arg.alignment_bytes) != 0) {
    return "the address is not aligned to the " + std::to_string(arg.alignment_bytes) +
           " bytes that the kernel was made for";
  }
  for (int i = 0; i < view.rank; ++i) {
    auto mode = static_cast<std::size_t>(i);
    if (!holds(arg.shape[i].value(), view.shape[mode])) {
      return "extent " + std::to_string(i) + " is " + std::to_string(view.shape[mode]) +
             ", the kernel was made for " + to_string(arg.shape[i]);
    }
    if (!holds(arg.stride[i].value(), view.stride[mode])) {
      return "stride " + std::to_string(i) + " is " + std::to_string(view.stride[mode]) +
             ", the kernel was made for " + to_string(arg.stride[i]);
    }
  }
  return {};
}

Traced::Traced() : module_(new ptx::Module) {}
Traced::Traced(Traced&& other) noexcept
    : entry(std::move(other.entry)),
      params(std::move(other.params)),
      block(other.block),
      module_(std::exchange(other.module_, nullptr)) {}
Traced& Traced::operator=(Traced&& other) noexcept {
  entry = std::move(other.entry);
  params = std::move(other.params);
  block = other.block;
  std::swap(module_, other.module_);
  return *this;
}
Traced::~Traced() { delete module_; }

namespace detail {

struct Recorder::State {
  State(const TraceOptions& options, SourceLoc where)
      : tracer(options.target, options.name), at(where) {}
  Tracer tracer;
  Traced traced;
  int arguments = 0;
  SourceLoc at;
};

namespace {

void require_entry_name(const std::string& entry, SourceLoc at) {
  bool ok = !entry.empty();
  for (std::size_t i = 0; i < entry.size(); ++i) {
    char c = entry[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
    bool digit = c >= '0' && c <= '9';
    ok &= letter || (digit && i > 0);
  }
  if (ok) return;
  throw Error(ErrorKind::user,
              "trace: '" + entry + "' is no kernel name; use letters, digits and underscores", at);
}

[[noreturn]] void refuse(const std::string& message, SourceLoc at) {
  throw Error(ErrorKind::user, "trace: " + message, at);
}

// PTX ISA, kernel function parameters: 4,352 bytes minus what the driver keeps, and 32,764 bytes
// since PTX 8.1 on sm_70 and newer.
constexpr std::int64_t kParameterBytes = 4096;
constexpr std::int64_t kManyParameterBytes = 32'764;
constexpr ptx::Version kManyParameters{8, 1};

void require_parameter_room(std::int64_t size_bytes, ptx::Target target, SourceLoc at) {
  std::int64_t most = target.sm >= 70 ? kManyParameterBytes : kParameterBytes;
  if (size_bytes <= most) return;
  refuse("the arguments need " + std::to_string(size_bytes) + " bytes of parameters; " +
             to_string(target) + " has " + std::to_string(most) + ", pass a table in memory",
         at);
}

/// What no view could mend: checked with a stand-in of the box's own extents.
void require_box(const TensorMapArg& arg, SourceLoc at) {
  TensorMap map{.type = arg.type, .rank = rank(arg)};
  map.swizzle = arg.swizzle;
  map.fill = arg.fill;
  map.im2col = arg.im2col;
  for (std::size_t i = 0; i < arg.box.size() && arg.box[i] != 0; ++i)
    map.box[i] = static_cast<std::uint32_t>(arg.box[i]);
  try {
    check_tensor_map(map, at);
  } catch (const Error& error) {
    refuse(error.message(), at);
  }
}

/// Limits of a block (CUDA Programming Guide, technical specifications).
void require_launchable(const TraceOptions& options, SourceLoc at) {
  if (Tracer::current_or_null() != nullptr) {
    refuse("a kernel is being traced on this thread already; trace one after the other", at);
  }
  const auto& [x, y, z] = options.block;
  std::string block = std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z);
  bool known = x > 0;
  bool fits = x >= 0 && x <= 1024 && y >= 1 && y <= 1024 && z >= 1 && z <= 64;
  if (!fits || (known && x * y * z > 1024)) {
    refuse("a block of (" + block +
               ") threads; it has at most 1024, of which 64 in z, and x = 0 where it is not known",
           at);
  }
  const auto& [cx, cy, cz] = options.cluster;
  bool cluster = cx != 0 || cy != 0 || cz != 0;
  if (cluster &&
      (cx < 1 || cy < 1 || cz < 1 || cx > 16 || cy > 16 || cz > 16 || cx * cy * cz > 16)) {
    refuse("a cluster of (" + std::to_string(cx) + "," + std::to_string(cy) + "," +
               std::to_string(cz) + ") blocks; it has 1 to 16",
           at);
  }
  if (options.max_registers < 0 || options.max_registers > 255 || options.min_blocks_per_sm < 0) {
    refuse("max_registers is " + std::to_string(options.max_registers) + " and min_blocks_per_sm " +
               std::to_string(options.min_blocks_per_sm) +
               "; they must be 0 (free) or positive, registers at most 255",
           at);
  }
}

}  // namespace

Recorder::Recorder(const TraceOptions& options, SourceLoc at) {
  require_entry_name(options.name, at);
  require_launchable(options, at);
  state_ = new State(options, at);
  Tracer& tracer = state_->tracer;
  ptx::Tuning& tuning = tracer.function().tuning;
  if (options.block[0] > 0) {
    tracer.block = options.block;
    tuning.reqntid = options.block;
  }
  tuning.minnctapersm = options.min_blocks_per_sm;
  tuning.maxnreg = options.max_registers;
  tuning.reqnctapercluster = options.cluster;
  state_->traced.entry = options.name;
  state_->traced.block = options.block;
}

Recorder::~Recorder() { delete state_; }

Value Recorder::load_parameter(Param param, Facts facts) {
  Tracer& tracer = state_->tracer;
  ptx::Variable variable;
  variable.space = ptx::Space::param;
  variable.type = bits(param.type) == 64 && !is_float(param.type)   ? b64
                  : bits(param.type) == 32 && !is_float(param.type) ? b32
                                                                    : param.type;
  if (bits(param.type) == 16) variable.type = b16;
  variable.name =
      tracer.function().name + "_param_" + std::to_string(tracer.function().params.size());
  ptx::SymbolId id = tracer.module().symbol_id(variable.name);
  ptx::RegId reg = tracer.new_reg(param.type);
  std::string op = "ld.param." + std::string(name(variable.type));
  tracer.function().params.push_back(std::move(variable));
  tracer.emit(op, {ptx::reg(reg), ptx::address_symbol(id)}, {});
  state_->traced.params.push_back(param);
  return tracer.result(param.type, reg, Uniformity::grid, facts);
}

Tensor Recorder::parameter(const TensorArg& arg) {
  Tracer& tracer = state_->tracer;
  int index = state_->arguments++;
  Facts address_facts{arg.alignment_bytes, std::numeric_limits<std::int64_t>::min(),
                      std::numeric_limits<std::int64_t>::max()};
  Value base = load_parameter({Param::Kind::address, index, 0, u64}, address_facts);
  ptx::RegId global = tracer.new_reg(u64);
  tracer.emit("cvta.to.global.u64", {ptx::reg(global), ptx::reg(ValueAccess::reg(base))}, {});
  Value address = tracer.result(u64, global, Uniformity::grid, address_facts);
  auto bind = [&](const Int& leaf, Param::Kind kind, int mode) -> Int {
    if (leaf.is_static()) return leaf;
    bool small = kind == Param::Kind::extent && is_short_extent(leaf);
    Value value = load_parameter({kind, index, mode, small ? s32 : s64},
                                 {leaf.divisor(), leaf.min(), leaf.max()});
    return to_int(value);
  };
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  for (int i = 0; i < arg.shape.rank(); ++i) {
    shape.emplace_back(bind(arg.shape[i].value(), Param::Kind::extent, i));
  }
  for (int i = 0; i < arg.stride.rank(); ++i) {
    stride.emplace_back(bind(arg.stride[i].value(), Param::Kind::stride, i));
  }
  Layout layout(IntTuple::tuple(std::move(shape)), IntTuple::tuple(std::move(stride)));
  return {arg.type, MemorySpace::global, address, std::move(layout), arg.alignment_bytes};
}

Value Recorder::parameter(const ScalarArg& arg) {
  int index = state_->arguments++;
  bool loadable = arg.type != pred && arg.type != none && arg.type != tf32 && bits(arg.type) >= 8 &&
                  !(is_float(arg.type) && bits(arg.type) < 16);
  if (!loadable) {
    throw Error(ErrorKind::user,
                "argument " + std::to_string(index) + " of " + state_->tracer.function().name +
                    ": no parameter has type " + std::string(name(arg.type)) +
                    "; give an integer, f16, bf16, f32, f64, a pair, or the bits as b8 to b64",
                state_->at);
  }
  return load_parameter({Param::Kind::scalar, index, 0, arg.type}, arg.facts);
}

TensorMapParam Recorder::parameter(const TensorMapArg& arg) {
  Tracer& tracer = state_->tracer;
  require_box(arg, state_->at);
  ptx::Variable variable;
  variable.space = ptx::Space::param;
  variable.type = b8;
  variable.alignment = kTensorMapAlignment;
  variable.extents = {kTensorMapBytes};
  variable.name =
      tracer.function().name + "_param_" + std::to_string(tracer.function().params.size());
  ptx::SymbolId id = tracer.module().symbol_id(variable.name);
  tracer.function().params.push_back(std::move(variable));
  state_->traced.params.push_back(
      {Param::Kind::tensor_map, state_->arguments++, 0, Type::none, arg});
  ptx::RegId place = tracer.new_reg(u64);
  ptx::RegId generic = tracer.new_reg(u64);
  tracer.emit("mov.u64", {ptx::reg(place), ptx::symbol(id)}, {});
  tracer.emit("cvta.param.u64", {ptx::reg(generic), ptx::reg(place)}, {});
  return {arg, tracer.result(u64, generic, Uniformity::grid, {kTensorMapAlignment})};
}

Traced Recorder::finish() {
  std::int64_t end = 0;
  for (const ptx::Variable& param : state_->tracer.function().params) {
    std::int64_t alignment = ptx::alignment_bytes(param);
    end = (end + alignment - 1) / alignment * alignment + ptx::size_bytes(param);
  }
  require_parameter_room(end, state_->tracer.target(), state_->at);
  state_->traced.module() = state_->tracer.finish(state_->at);
  ptx::Module& module = state_->traced.module();
  if (end > kParameterBytes) {
    module.version = std::max(ptx::required_version(module), kManyParameters);
  }
  ptx::check_capabilities(state_->traced.module());
  return std::move(state_->traced);
}

}  // namespace detail
}  // namespace tilewright

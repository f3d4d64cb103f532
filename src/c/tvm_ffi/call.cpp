// SPDX-License-Identifier: Apache-2.0
// From TVM-FFI's values to the arguments of an operator, and its launch on the stream that TVM-FFI
// names; tensors in host memory run in the emulator.
#include "c/tvm_ffi/call.h"

#include "c/tensor.h"
#include "runtime/host_call.h"
#include "tilewright/buffer.h"
#include "tilewright/device.h"
#include "tilewright/stream.h"

#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <tvm/ffi/extra/c_env_api.h>

namespace tilewright::c {
namespace {

/// Where the tensors of a call are: DLPack's kind of device and its number.
struct Place {
  int kind = 0;
  int id = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// The devices that calls ran on, and the workspaces there.
class Machine {
 public:
  const Device& gpu(int id) {
    const std::lock_guard lock(mutex_);
    const auto found = gpus_.find(id);
    if (found != gpus_.end()) return found->second;
    return gpus_.emplace(id, Device::open("cuda:" + std::to_string(id), SourceLoc{})).first->second;
  }
  /// Zeros at first; of the operator's launches on this stream from then on.
  Workspace workspace(const Operator& op, const Device& device, int id, void* stream,
                      std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto key = std::tuple(&op, id, stream, bytes);
    auto found = workspaces_.find(key);
    if (found == workspaces_.end()) {
      found = workspaces_.emplace(key, Buffer(device, bytes)).first;
      found->second.fill(std::byte{0});
    }
    return {found->second.address(), bytes};
  }
  std::vector<emu::Diagnostic> emulate(const Operator& op, const Arguments& arguments,
                                       std::span<const detail::HostTensor> tensors) {
    const std::lock_guard lock(mutex_);
    if (!emulator_) emulator_ = Device::open("emu:sm_90a", SourceLoc{});
    return detail::run_on_copies(*emulator_, op, arguments, tensors);
  }

 private:
  std::mutex mutex_;
  std::map<int, Device> gpus_;
  std::map<std::tuple<const Operator*, int, void*, std::int64_t>, Buffer> workspaces_;
  std::optional<Device> emulator_;
};

Machine& machine() {
  static auto* const one = new Machine();  // outlives what the caller's runtime does at its end
  return *one;
}

/// Null: it is no tensor.
const DLTensor* tensor_of(const TVMFFIAny& value) {
  if (value.type_index == kTVMFFIDLTensorPtr) return static_cast<const DLTensor*>(value.v_ptr);
  if (value.type_index == kTVMFFITensor) return TVMFFITensorGetDLTensorPtr(value.v_obj);
  return nullptr;
}

tw_tensor on_gpu(const DLTensor& tensor) {
  return {.data = tensor.data,
          .device_type = kDLCUDA,
          .device_id = tensor.device.device_id,
          .ndim = tensor.ndim,
          .type_code = tensor.dtype.code,
          .type_bits = tensor.dtype.bits,
          .type_lanes = tensor.dtype.lanes,
          .shape = tensor.shape,
          .strides = tensor.strides,
          .byte_offset = tensor.byte_offset};
}

bool is_text(const TVMFFIAny& value) {
  return value.type_index == kTVMFFIRawStr || value.type_index == kTVMFFISmallStr ||
         value.type_index == kTVMFFIStr;
}

std::string_view text_of(const TVMFFIAny& value) {
  if (value.type_index == kTVMFFIRawStr) return value.v_c_str;
  if (value.type_index == kTVMFFISmallStr) return {value.v_bytes, value.small_str_len};
  const TVMFFIByteArray* bytes = TVMFFIBytesGetByteArrayPtr(value.v_obj);
  return {bytes->data, bytes->size};
}

class Call {
 public:
  explicit Call(const Operator& op) : op_(op), arguments_(op.schema) {}

  void take(std::span<const TVMFFIAny> values) {
    std::size_t next = 0;
    for (; next < values.size() && !is_text(values[next]); ++next) {
      if (next == op_.schema.tensors.size()) {
        arguments_.fail("takes at most " + std::to_string(next) +
                            " tensors by position; names and values follow",
                        SourceLoc{});
      }
      take_tensor(op_.schema.tensors[next], values[next]);
    }
    for (; next < values.size(); next += 2)
      take_named(values.subspan(next));
  }

  void run() {
    if (!place_) arguments_.fail("no tensor is given", SourceLoc{});
    if (place_->kind == kDLCUDA) return run_on_gpu();
    const auto found = machine().emulate(op_, arguments_, host_tensors_);
    if (!found.empty()) throw Error(ErrorKind::unsupported, emu::to_string(found.front()));
  }

 private:
  /// A name, and its value behind it.
  void take_named(std::span<const TVMFFIAny> values) {
    if (!is_text(values[0])) arguments_.fail("a name is expected behind names", SourceLoc{});
    const std::string_view name = text_of(values[0]);
    if (values.size() == 1) {
      arguments_.fail("'" + std::string(name) + "' has no value behind it", SourceLoc{});
    }
    for (const TensorSpec& spec : op_.schema.tensors) {
      if (spec.name == name) return take_tensor(spec, values[1]);
    }
    take_option(name, values[1]);
  }

  void take_tensor(const TensorSpec& spec, const TVMFFIAny& value) {
    if (value.type_index == kTVMFFINone) return;
    const std::string name(spec.name);
    const DLTensor* tensor = tensor_of(value);
    if (tensor == nullptr) arguments_.fail("'" + name + "' is not a tensor", SourceLoc{});
    const bool host = tensor->device.device_type == kDLCPU;
    const Place place{host ? kDLCPU : kDLCUDA, host ? 0 : tensor->device.device_id};
    if (!host && tensor->device.device_type != kDLCUDA)
      arguments_.fail("'" + name + "' is neither on a GPU nor in host memory", SourceLoc{});
    if (place_ && *place_ != place)
      arguments_.fail("'" + name + "' is not where the first tensor is", SourceLoc{});
    place_ = place;
    const View view = view_of(on_gpu(*tensor), name);
    arguments_.set(name, view, SourceLoc{});
    host_tensors_.push_back({spec.name, spec.role, view});
  }

  void take_option(std::string_view name, const TVMFFIAny& value) {
    switch (value.type_index) {
      case kTVMFFINone:  // the default
        return;
      case kTVMFFIInt:
        return arguments_.set_option(name, std::to_string(value.v_int64), SourceLoc{});
      case kTVMFFIBool:
        return arguments_.set_option(name, value.v_int64 != 0 ? "true" : "false", SourceLoc{});
      case kTVMFFIFloat:
        return arguments_.set_option(name, value.v_float64, SourceLoc{});
      case kTVMFFIRawStr:
      case kTVMFFISmallStr:
      case kTVMFFIStr:
        return arguments_.set_option(name, text_of(value), SourceLoc{});
      default:
        arguments_.fail("option '" + std::string(name) + "' is no number, boolean or text",
                        SourceLoc{});
    }
  }

  void run_on_gpu() {
    const Device& device = machine().gpu(place_->id);
    void* const stream = TVMFFIEnvGetStream(kDLCUDA, place_->id);
    const std::int64_t bytes = op_.workspace_bytes == nullptr ? 0 : op_.workspace_bytes(arguments_);
    if (bytes > 0)
      arguments_.set_workspace(machine().workspace(op_, device, place_->id, stream, bytes));
    op_.launch(device, Stream::wrap(device, stream), arguments_);
  }

  const Operator& op_;
  Arguments arguments_;
  std::optional<Place> place_;
  std::vector<detail::HostTensor> host_tensors_;
};

}  // namespace

int call_by_tvm_ffi(const Operator& op, const TVMFFIAny* arguments, std::int32_t count,
                    TVMFFIAny* result) noexcept {
  try {
    Call call(op);
    call.take({arguments, static_cast<std::size_t>(count)});
    call.run();
    *result = TVMFFIAny{};
    return 0;
  } catch (const Error& error) {
    TVMFFIErrorSetRaisedFromCStr(error.kind() == ErrorKind::user ? "ValueError" : "RuntimeError",
                                 error.message().c_str());
  } catch (const std::exception& error) {
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", error.what());
  }
  return -1;
}

}  // namespace tilewright::c

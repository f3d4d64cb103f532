// SPDX-License-Identifier: Apache-2.0
// Reading and making tensors through the adapters of tilewright._frameworks.
#include "python/framework.h"

#include "c/tensor.h"

#include <algorithm>
#include <array>
#include <nanobind/stl/string.h>
#include <unordered_map>
#include <vector>

namespace nb = nanobind;

namespace tilewright::python {
namespace {

constexpr std::int32_t kDlHost = 1;          // kDLCPU
constexpr std::int32_t kDlCuda = 2;          // kDLCUDA
constexpr std::int32_t kDlCudaHost = 3;      // kDLCUDAHost: pinned
constexpr std::int32_t kDlCudaManaged = 13;  // kDLCUDAManaged
constexpr const char* kApiCapsule = "dlpack_exchange_api";
constexpr std::uint32_t kApiMajor = 1;

[[noreturn]] void refuse(const TensorSpec& spec, const std::string& what) {
  throw Error(ErrorKind::user, "tensor " + std::string(spec.name) + ": " + what);
}

/// With the first line of the Python error that is set.
[[noreturn]] void refuse_unreadable(const TensorSpec& spec) {
  const nb::python_error error;
  const auto text = nb::cast<std::string>(nb::str(error.value()));
  refuse(spec, "cannot be read: " + text.substr(0, text.find('\n')));
}

nb::object attribute_or_none(nb::handle object, const char* name) {
  return nb::getattr(object, name, nb::none());
}

/// Null where the type offers none, or only one of a version that is not known here.
const ExchangeApi* exchange_api(nb::handle type) {
  const nb::object capsule = attribute_or_none(type, "__dlpack_c_exchange_api__");
  if (PyCapsule_IsValid(capsule.ptr(), kApiCapsule) == 0) return nullptr;
  const auto* api =
      static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), kApiCapsule));
  while (api != nullptr && api->version.major != kApiMajor)
    api = api->older;
  return api != nullptr && api->tensor_from_object != nullptr ? api : nullptr;
}

/// PyTorch's element of e2m1 is a pair in a byte; the library counts single ones.
class SingleElements {
 public:
  SingleElements(tw_tensor& tensor, const TensorSpec& spec) {
    const auto rank = static_cast<std::size_t>(std::clamp(tensor.ndim, 0, kMaxViewRank));
    if (rank == 0 || (tensor.strides != nullptr && tensor.strides[rank - 1] != 1)) {
      refuse(spec, "has pairs of e2m1 that do not lie side by side along the last mode");
    }
    std::copy_n(tensor.shape, rank, shape_.begin());
    shape_[rank - 1] *= 2;
    tensor.shape = shape_.data();
    if (tensor.strides != nullptr) {
      std::transform(tensor.strides, tensor.strides + rank - 1, stride_.begin(),
                     [](std::int64_t pairs) { return 2 * pairs; });
      stride_[rank - 1] = 1;
      tensor.strides = stride_.data();
    }
    tensor.type_lanes = 1;
  }

 private:
  std::array<std::int64_t, kMaxViewRank> shape_{}, stride_{};
};

/// The tensor as a view, with its place.
void set_view(const tw_tensor& given, const TensorSpec& spec, Tensor& tensor) {
  const bool host = given.device_type == kDlHost || given.device_type == kDlCudaHost;
  if (!host && given.device_type != kDlCuda && given.device_type != kDlCudaManaged) {
    refuse(spec, "is in memory of DLPack's device type " + std::to_string(given.device_type) +
                     "; it must be 2, a GPU's, or 1, the host's");
  }
  tw_tensor on_device = given;  // host memory is copied to an emulated device later
  on_device.device_type = kDlCuda;
  std::optional<SingleElements> single;
  if (given.type_bits == 4 && given.type_lanes == 2) single.emplace(on_device, spec);
  tensor.view = c::view_of(on_device, std::string(spec.name));
  tensor.place = host ? Place::host : Place::cuda;
  tensor.device_id = given.device_id;
}

/// Whether it is a tilewright.Fp4Pairs.
bool is_pairs(nb::handle object) {
  static PyObject* const type =
      nb::object(nb::module_::import_("tilewright._frameworks").attr("Fp4Pairs")).release().ptr();
  return reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == type;
}

/// Bytes as the pairs of e2m1 that they hold.
View pairs_in(const View& bytes, const TensorSpec& spec) {
  const auto rank = static_cast<std::size_t>(bytes.rank);
  const bool side_by_side =
      bytes.type == u8 && rank > 0 && (bytes.stride[rank - 1] == 1 || bytes.shape[rank - 1] == 1);
  if (!side_by_side) {
    refuse(spec, "has pairs of e2m1 in " + to_string(bytes) +
                     "; they must be in u8, side by side along the last mode");
  }
  View view = bytes;
  view.type = e2m1;
  for (std::size_t i = 0; i + 1 < rank; ++i)
    view.stride[i] *= 2;
  view.shape[rank - 1] *= 2;
  view.stride[rank - 1] = 1;
  return view;
}

bool numpy_has(Type type) {
  switch (type) {
    case bf16:
    case e4m3:
    case e5m2:
    case e2m3:
    case e3m2:
    case ue8m0:
    case ue4m3:
      return false;
    default:
      return true;
  }
}

/// Arrays of NumPy without ml_dtypes hold bf16 as u16, and types of a byte as u8.
void reinterpret_bits(const TensorSpec& spec, View& view) {
  if (view.type != u8 && view.type != u16) return;
  if (std::find(spec.types.begin(), spec.types.end(), view.type) != spec.types.end()) return;
  Type only = Type::none;
  for (Type type : spec.types) {
    if (numpy_has(type) || storage_bits(type) != bits(view.type)) continue;
    if (only != Type::none) return;
    only = type;
  }
  if (only != Type::none) view.type = only;
}

nb::object shape_tuple(const std::vector<std::int64_t>& shape) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t i = 0; i < shape.size(); ++i)
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
  return tuple;
}

nb::object name_of(Type type) {
  const std::string_view text = name(type);
  return nb::str(text.data(), text.size());
}

}  // namespace

Framework::Framework(nb::handle type, nb::object adapter)
    : type_(nb::borrow(type)), adapter_(std::move(adapter)), api_(exchange_api(type)) {
  describe_ = attribute_or_none(adapter_, "describe");
  capsule_ = attribute_or_none(adapter_, "capsule");
  stream_ = attribute_or_none(adapter_, "stream");
  current_device_ = attribute_or_none(adapter_, "current_device");
  uses_streams_ = nb::cast<bool>(adapter_.attr("uses_streams"));
}

const Framework& Framework::of(nb::handle tensor) {
  // Never destroyed: Python is gone when static objects are.
  static auto* const known = new std::unordered_map<PyTypeObject*, const Framework*>();
  PyTypeObject* type = Py_TYPE(tensor.ptr());
  const auto found = known->find(type);
  if (found != known->end()) return *found->second;
  if (is_pairs(tensor)) return of(tensor.attr("bytes"));
  nb::handle handle(reinterpret_cast<PyObject*>(type));
  nb::object adapter = nb::module_::import_("tilewright._frameworks").attr("adapter_of")(handle);
  return *known->emplace(type, new Framework(handle, std::move(adapter))).first->second;
}

void Framework::describe(nb::handle object, const TensorSpec& spec, Tensor& tensor) const {
  const nb::object description = describe_(object);
  const auto text = nb::cast<std::string>(description[1]);
  const std::optional<Type> type = type_from_name(text);
  if (!type) refuse(spec, "has the type " + text + ", which is none of the library's");
  std::vector<std::int64_t> shape, stride;
  for (nb::handle extent : description[2])
    shape.push_back(nb::cast<std::int64_t>(extent));
  for (nb::handle step : description[3])
    stride.push_back(nb::cast<std::int64_t>(step));
  if (shape.size() > kMaxViewRank) {
    refuse(spec, "has " + std::to_string(shape.size()) + " modes; it may have 0 to " +
                     std::to_string(kMaxViewRank));
  }
  tensor.view =
      make_view(nb::cast<std::uint64_t>(description[0]), *type, shape, stride, SourceLoc{});
  tensor.read_only = nb::cast<bool>(description[4]);
  const int device = nb::cast<int>(description[5]);
  tensor.place = device < 0 ? Place::host : Place::cuda;
  tensor.device_id = std::max(device, 0);
}

Tensor Framework::read(nb::handle object, const TensorSpec& spec) const {
  const bool bare = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == type_.ptr();
  Tensor tensor = read_bare(bare ? nb::borrow(object) : nb::object(object.attr("bytes")), spec);
  if (bare) {
    reinterpret_bits(spec, tensor.view);
    return tensor;
  }
  tensor.view = pairs_in(tensor.view, spec);
  tensor.owner = nb::borrow(object);
  return tensor;
}

Tensor Framework::read_bare(nb::handle object, const TensorSpec& spec) const {
  Tensor tensor;
  tensor.owner = nb::borrow(object);
  if (api_ != nullptr) {
    tw_tensor given;
    if (api_->tensor_from_object(object.ptr(), &given) != 0) refuse_unreadable(spec);
    set_view(given, spec, tensor);
  } else if (!describe_.is_none()) {
    describe(object, spec, tensor);
  } else if (!capsule_.is_none()) {
    tensor.export_ = capsule_(object);
    void* pointer = PyCapsule_GetPointer(tensor.export_.ptr(), "dltensor");
    if (pointer == nullptr) throw nb::python_error();
    set_view(static_cast<const ManagedTensor*>(pointer)->tensor, spec, tensor);
  } else {
    const std::string type = nb::cast<std::string>(nb::handle(type_).attr("__name__"));
    refuse(spec, "is a Python object of type " + type + "; give an array that has __dlpack__");
  }
  return tensor;
}

Maker Framework::maker(const OutputSpec& output, const Tensor& like) const {
  const int device = like.place == Place::host ? -1 : like.device_id;
  const nb::object shape = shape_tuple(output.shape);
  Maker maker{adapter_.attr("maker")(name_of(output.type), device), nb::make_tuple(shape), {}, {}};
  const nb::object here = attribute_or_none(adapter_, "maker_here");
  if (here.is_none()) return maker;
  const nb::object ready = here(name_of(output.type), shape, device);
  if (ready.is_none()) return maker;
  maker.function_here = ready[0];
  maker.arguments_here = ready[1];
  return maker;
}

nb::object Framework::make(const Maker& maker, const Tensor& like) const {
  const bool here =
      maker.function_here.is_valid() &&
      (like.place == Place::host || nb::cast<int>(current_device_()) == like.device_id);
  const nb::object& function = here ? maker.function_here : maker.function;
  const nb::object& arguments = here ? maker.arguments_here : maker.arguments;
  const nb::object made = nb::steal(PyObject_Call(function.ptr(), arguments.ptr(), nullptr));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

nb::object Framework::zeros(std::int64_t bytes, int device_id) const {
  return adapter_.attr("zeros")(bytes, device_id);
}

std::uint64_t Framework::address(nb::handle zeros) const {
  static constexpr std::array kTypes{u8};
  const TensorSpec spec{.name = "workspace", .shape = "*", .types = kTypes};
  return read(zeros, spec).view.address;
}

void* Framework::stream(int device_id) const {
  if (api_ != nullptr && api_->current_stream != nullptr) {
    void* stream = nullptr;
    if (api_->current_stream(kDlCuda, device_id, &stream) != 0) throw nb::python_error();
    return stream;
  }
  if (stream_.is_none()) return nullptr;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle of the driver's
  return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(stream_(device_id)));
}

}  // namespace tilewright::python

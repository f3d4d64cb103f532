// SPDX-License-Identifier: Apache-2.0
// Operators as functions of a module, and the objects behind them.
#include "python/errors.h"
#include "python/operator_call.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <string>

namespace nb = nanobind;

namespace tilewright::python {
namespace {

nb::str to_str(std::string_view text) { return nb::str(text.data(), text.size()); }

nb::dict dict_of(const TensorSpec& spec) {
  nb::dict dict;
  dict["name"] = spec.name;
  dict["role"] = to_str(name(spec.role));
  dict["optional"] = spec.presence == Presence::optional;
  dict["shape"] = spec.shape;
  nb::list types;
  for (Type type : spec.types)
    types.append(to_str(name(type)));
  dict["types"] = types;
  dict["may_alias"] = spec.may_alias;
  dict["doc"] = spec.doc;
  return dict;
}

nb::dict dict_of(const OptionSpec& spec) {
  nb::dict dict;
  dict["name"] = spec.name;
  dict["type"] = to_str(name(spec.type));
  dict["default"] = spec.is_required() ? nb::object(nb::none()) : to_str(spec.default_text);
  nb::list words;
  for (std::string_view each : spec.words)
    words.append(to_str(each));
  dict["words"] = words;
  dict["least"] = spec.least;
  dict["most"] = spec.most;
  dict["doc"] = spec.doc;
  return dict;
}

nb::dict dict_of(const Schema& schema) {
  nb::dict dict;
  dict["name"] = schema.name;
  dict["version"] = schema.version;
  dict["formula"] = schema.formula;
  dict["doc"] = schema.doc;
  nb::list tensors, options;
  for (const TensorSpec& spec : schema.tensors)
    tensors.append(dict_of(spec));
  for (const OptionSpec& spec : schema.options)
    options.append(dict_of(spec));
  dict["tensors"] = tensors;
  dict["options"] = options;
  return dict;
}

/// Arguments of a function of nanobind's, as a Given.
class Unpacked {
 public:
  Unpacked(const nb::args& args, const nb::kwargs& kwargs) {
    for (nb::handle value : args)
      positional_.push_back(value.ptr());
    nb::list names;
    for (auto [key, value] : kwargs) {
      names.append(key);
      keywords_.push_back(value.ptr());
    }
    names_ = nb::tuple(names);
  }
  Given given() const { return {positional_, keywords_, names_}; }

 private:
  std::vector<PyObject*> positional_, keywords_;
  nb::tuple names_;
};

nb::dict named(const OperatorCall& call, const nb::args& args, const nb::kwargs& kwargs) {
  return call.named(Unpacked(args, kwargs).given());
}

double seconds_in_cpp(const OperatorCall& call, std::int64_t count, const nb::args& args,
                      const nb::kwargs& kwargs) {
  return call.seconds_in_cpp(count, Unpacked(args, kwargs).given());
}

/// What CPython calls: no tuple and no dict is made for the arguments.
PyObject* call_operator(PyObject* self, PyObject* const* args, Py_ssize_t count,
                        PyObject* names) noexcept {
  try {
    const auto positional = static_cast<std::size_t>(count);
    const auto keywords = static_cast<std::size_t>(names == nullptr ? 0 : PyTuple_Size(names));
    const OperatorCall& call = *nb::inst_ptr<OperatorCall>(self);
    return call.call({{args, positional}, {args + positional, keywords}, names}).release().ptr();
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
}

}  // namespace

void bind_operator_call(nb::module_& module) {
  register_errors();
  nb::set_leak_warnings(false);  // PyTorch's registry keeps operators beyond the interpreter's end
  nb::class_<OperatorCall>(module, "Operator")
      .def("named", &named)
      .def("_seconds_in_cpp", &seconds_in_cpp)
      .def("outputs", &OperatorCall::outputs, nb::arg("inputs"), nb::arg("options") = nb::dict())
      .def_prop_ro("schema", [](const OperatorCall& call) { return dict_of(call.op().schema); });
}

void add_operator(nb::module_& module, const Operator& op) {
  struct Definition {
    std::string name, doc;
    PyMethodDef method;
  };
  const nb::object self = nb::cast(OperatorCall(op));
  const nb::module_ documentation = nb::module_::import_("tilewright._documentation");
  const nb::object doc = documentation.attr("documentation")(self.attr("schema"));
  // The function points to it as long as the process runs.
  auto* definition =
      new Definition{std::string(op.schema.name), nb::cast<std::string>(doc), PyMethodDef{}};
  definition->method = {definition->name.c_str(),
                        // NOLINTNEXTLINE(bugprone-casting-through-void): as CPython's macro casts
                        reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call_operator)),
                        METH_FASTCALL | METH_KEYWORDS, definition->doc.c_str()};
  const nb::object name = module.attr("__name__");
  module.attr(to_str(op.schema.name)) =
      nb::steal(PyCFunction_NewEx(&definition->method, self.ptr(), name.ptr()));
}

}  // namespace tilewright::python

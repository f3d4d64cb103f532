// SPDX-License-Identifier: Apache-2.0
// Exceptions of Python's for errors and findings.
#include "python/errors.h"

#include "tilewright/error.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <string>

namespace nb = nanobind;

namespace tilewright::python {
namespace {

nb::object place_dict(const emu::Place& place) {
  nb::dict dict;
  dict["file"] = place.source.file;
  dict["line"] = place.source.line;
  dict["ptx_line"] = place.ptx_line;
  dict["instruction"] = place.instruction;
  dict["block"] = nb::make_tuple(place.block.x, place.block.y, place.block.z);
  dict["thread"] = nb::make_tuple(place.thread.x, place.thread.y, place.thread.z);
  dict["agent"] = place.agent;
  return nb::module_::import_("tilewright._findings").attr("Place")(**dict);
}

nb::object finding_object(const emu::Diagnostic& finding) {
  nb::dict dict;
  dict["kind"] = name(finding.kind);
  dict["severity"] = name(finding.severity);
  dict["message"] = finding.message;
  dict["entry"] = finding.entry;
  dict["place"] = place_dict(finding.place);
  dict["other"] = finding.other ? place_dict(*finding.other) : nb::none();
  dict["count"] = finding.count;
  dict["text"] = emu::to_string(finding);
  return nb::module_::import_("tilewright._findings").attr("Finding")(**dict);
}

void raise(const Findings& findings) {
  const nb::object type = nb::module_::import_("tilewright._findings").attr("FindingsError");
  const nb::object error = type(finding_list(findings.found()));
  PyErr_SetObject(type.ptr(), error.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyObject* type = error.kind() == ErrorKind::user ? PyExc_ValueError : PyExc_RuntimeError;
    PyErr_SetString(type, error.message().c_str());
  } catch (const Findings& findings) {
    raise(findings);
  }
}

}  // namespace

nb::list finding_list(std::span<const emu::Diagnostic> findings) {
  nb::list list;
  for (const emu::Diagnostic& finding : findings)
    list.append(finding_object(finding));
  return list;
}

void set_python_error(const std::exception_ptr& thrown) noexcept {
  try {
    translate(thrown, nullptr);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void register_errors() { nb::register_exception_translator(translate); }

}  // namespace tilewright::python

// SPDX-License-Identifier: Apache-2.0
// The extension module tilewright._core.
#include "python/operator_call.h"
#include "python/tools.h"
#include "tilewright/operators.h"

NB_MODULE(_core, module) {
  module.doc() = "What the package tilewright is made of; not for direct use.";
  module.attr("version") = TILEWRIGHT_VERSION;
  tilewright::python::bind_operator_call(module);
  nanobind::module_ ops = module.def_submodule("ops");
  for (const tilewright::Operator* op : tilewright::operators())
    tilewright::python::add_operator(ops, *op);
  tilewright::python::bind_tools(module);
}

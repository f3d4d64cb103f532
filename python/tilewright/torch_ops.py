# SPDX-License-Identifier: Apache-2.0
"""The operators as PyTorch's own, ``torch.ops.tilewright.NAME``, which torch.compile keeps in its graphs.

Importing the module registers them. Tensors that are read and written are mutable arguments; outputs are always
made and returned, optional ones are mutable keyword arguments that may be given. An output that these arguments
do not have (scales where nothing is quantised) is an empty tensor. Numbers that may be a word ("auto") are
``None`` for the default. Shapes are constants of a compiled graph.
"""
import torch

from . import ops
from ._documentation import default_of
from ._frameworks import adapter_of

_OPTION_TYPES = {"boolean": "bool", "integer": "int", "number": "float", "choice": "str", "text": "str"}
_adapter = adapter_of(torch.Tensor)


def _is_made(tensor):
    """Required outputs, and what need not be given because it is not always read."""
    return tensor["role"] == "output" and not tensor["optional"] or tensor["role"] == "inout" and tensor["optional"]


def _option(option):
    kind, default = _OPTION_TYPES[option["type"]], default_of(option)
    if default is None:
        return f"{kind} {option['name']}"
    if option["words"] and kind in ("int", "float"):
        return f"{kind}? {option['name']}=None" if isinstance(default, str) else f"{kind}? {option['name']}={default}"
    if kind == "str":
        default = f'"{default}"'
    return f"{kind} {option['name']}={default}"


def _signature(schema):
    """The operator in the notation of torch.library."""
    inputs, keywords, marks = [], [], iter("abcdefghijklmnopqrstuvwxyz")
    for tensor in schema["tensors"]:
        if tensor["role"] == "output" and tensor["optional"]:
            keywords.append(f"Tensor({next(marks)}!)? {tensor['name']}=None")
        elif not _is_made(tensor):
            written = f"({next(marks)}!)" if tensor["role"] == "inout" else ""
            inputs.append(f"Tensor{written}{'?' * tensor['optional']} {tensor['name']}")
    for i in reversed(range(len(inputs))):  # defaults cannot stand before an input without one
        if not inputs[i].startswith("Tensor?"):
            break
        inputs[i] += "=None"
    keywords += [_option(each) for each in schema["options"]]
    returns = ", ".join("Tensor" for each in schema["tensors"] if _is_made(each))
    return f"{schema['name']}({', '.join(inputs + ['*'] * bool(keywords) + keywords)}) -> ({returns})"


def _returned(names, made, like):
    """One tensor or a tuple; nothing for operators that only change their arguments."""
    tensors = tuple(made[name] if name in made else like.new_empty(0) for name in names)
    return tensors[0] if len(tensors) == 1 else tensors or None


def _register(library, function):
    op = function.__self__
    schema = op.schema
    made = [each["name"] for each in schema["tensors"] if _is_made(each)]
    inputs = [each["name"] for each in schema["tensors"] if each["role"] != "output" and not _is_made(each)]
    tensors = {each["name"] for each in schema["tensors"]}

    def run(*args, **keywords):
        if not keywords and len(made) == 1:  # the output, without a look at names
            return function(*args)
        return _returned(made, op.named(*args, **keywords), args[0])

    def fake(*args, **keywords):
        given = {**dict(zip(inputs, args)), **keywords}
        described = {name: _adapter.typed_layout(value) for name, value in given.items() if name in tensors and value is not None}
        options = {name: value for name, value in given.items() if name not in tensors}
        outputs = {name: args[0].new_empty(_adapter.shape(shape, kind), dtype=_adapter.dtype(kind))
                   for name, kind, shape in op.outputs(described, options)}
        return _returned(made, outputs, args[0])

    library.define(_signature(schema), tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        library.impl(schema["name"], run, key)
    torch.library.register_fake(f"tilewright::{schema['name']}", fake, lib=library)


_library = torch.library.Library("tilewright", "DEF")
for _name in ops.__all__:
    _register(_library, getattr(ops, _name))

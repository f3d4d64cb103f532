# SPDX-License-Identifier: Apache-2.0
"""The operators as PyTorch's own, ``torch.ops.tilewright.NAME``, which torch.compile keeps in its graphs.

Importing the module registers them. Tensors that are read and written are mutable arguments, optional ones and
optional outputs mutable keyword arguments that may be given; other outputs are always made and returned. An output
that these arguments do not have (scales where nothing is quantised), or that is given, is an empty tensor. An
operator without inputs (rope_table) writes an argument. Numbers that may be a word ("auto") are ``None`` for the
default. The option ``mode`` is ``mode_`` here. Shapes are constants of a compiled graph.
"""
import torch

from . import ops
from ._documentation import default_of
from ._frameworks import adapter_of

_OPTION_TYPES = {"boolean": "bool", "integer": "int", "number": "float", "choice": "str", "text": "str"}
_adapter = adapter_of(torch.Tensor)


def _made(schema):
    """What is returned: required outputs, and what need not be given because it is not always read."""
    if all(each["role"] == "output" for each in schema["tensors"]):
        return []  # nothing tells where to make them
    return [each["name"] for each in schema["tensors"]
            if (each["role"] == "inout") == each["optional"] and each["role"] != "input" and not _is_counter(each)]


def _is_counter(tensor):
    """What launches add to: it has to be given to be of use."""
    return tensor["role"] == "inout" and tensor["optional"] and tensor["shape"] == "1"


def _is_keyword(tensor):
    return tensor["optional"] and tensor["role"] != "input"


def _parameter(option):
    """PyTorch's own functions that operators are passed through have a parameter ``mode``."""
    return "mode_" if option["name"] == "mode" else option["name"]


def _option(option):
    kind, name, default = _OPTION_TYPES[option["type"]], _parameter(option), default_of(option)
    if default is None:
        return f"{kind} {name}"
    if option["words"] and kind in ("int", "float"):
        return f"{kind}? {name}=None" if isinstance(default, str) else f"{kind}? {name}={default}"
    if kind == "str":
        default = f'"{default}"'
    return f"{kind} {name}={default}"


def _signature(schema):
    """The operator in the notation of torch.library."""
    inputs, keywords, marks, made = [], [], iter("abcdefghijklmnopqrstuvwxyz"), _made(schema)
    for tensor in schema["tensors"]:
        if _is_keyword(tensor):
            keywords.append(f"Tensor({next(marks)}!)? {tensor['name']}=None")
        elif tensor["name"] not in made:
            written = f"({next(marks)}!)" if tensor["role"] != "input" else ""
            inputs.append(f"Tensor{written}{'?' * tensor['optional']} {tensor['name']}")
    for i in reversed(range(len(inputs))):  # defaults cannot stand before an input without one
        if not inputs[i].startswith("Tensor?"):
            break
        inputs[i] += "=None"
    keywords += [_option(each) for each in schema["options"]]
    returns = ", ".join("Tensor" for _ in made)
    return f"{schema['name']}({', '.join(inputs + ['*'] * bool(keywords) + keywords)}) -> ({returns})"


def _returned(names, made, like):
    """One tensor or a tuple; nothing for operators that only change their arguments."""
    tensors = tuple(made[name] if name in made else like.new_empty(0) for name in names)
    return tensors[0] if len(tensors) == 1 else tensors or None


def _register(library, function):
    op = function.__self__
    schema = op.schema
    made = _made(schema)
    inputs = [each["name"] for each in schema["tensors"] if each["name"] not in made and not _is_keyword(each)]
    tensors = {each["name"] for each in schema["tensors"]}
    names = {_parameter(each): each["name"] for each in schema["options"]}

    def named(keywords):
        return {names.get(name, name): value for name, value in keywords.items()}

    def run(*args, **keywords):
        if not keywords and len(made) == 1:  # without a look at names
            output = function(*args)
            return args[0].new_empty(0) if output is None else output
        found = op.named(**dict(zip(inputs, args)), **named(keywords))
        return _returned(made, {name: found[name] for name in made if keywords.get(name) is None and name in found}, args[0])

    def fake(*args, **keywords):
        given = {**dict(zip(inputs, args)), **named(keywords)}
        described = {name: _adapter.typed_layout(value) for name, value in given.items() if name in tensors and value is not None}
        options = {name: value for name, value in given.items() if name not in tensors}
        outputs = {name: args[0].new_empty(_adapter.shape(shape, kind), dtype=_adapter.dtype(kind))
                   for name, kind, shape in op.outputs(described, options) if name not in described} if made else {}
        return _returned(made, outputs, args[0])

    library.define(_signature(schema), tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        library.impl(schema["name"], run, key)
    torch.library.register_fake(f"tilewright::{schema['name']}", fake, lib=library)


_library = torch.library.Library("tilewright", "DEF")
for _name in ops.__all__:
    _register(_library, getattr(ops, _name))

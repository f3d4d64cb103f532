# SPDX-License-Identifier: Apache-2.0
"""Docstrings and signatures of operators from their schemas."""
from typing import Any, Callable, Dict


def schema(operator: Callable[..., Any]) -> Dict[str, Any]:
    """The schema of a function of ``tilewright.ops`` or of an extension, as data: name, formula, tensors, options."""
    return operator.__self__.schema


def _allowed(option):
    if option["type"] == "boolean":
        return "True or False"
    text = {"number": "a number", "integer": "an integer", "choice": "", "text": "a text"}[option["type"]]
    if option["least"] > float("-inf"):
        text += f" of at least {option['least']:g}"
    if option["most"] < float("inf"):
        text += f"{' and' if 'least' in text else ' of'} at most {option['most']:g}"
    words = ", ".join(repr(word) for word in option["words"])
    return ", or ".join(part for part in (text, words) if part)


def default_of(option):
    """The default as Python has it; None where there is none: the option has to be given."""
    text = option["default"]
    if text is None:
        return None
    if option["type"] == "boolean":
        return text in ("true", "1")
    if option["type"] in ("choice", "text") or text in option["words"]:
        return text
    return int(text) if option["type"] == "integer" else float(text)


def _tensor_line(tensor):
    shape = f"[{tensor['shape']}]" if tensor["shape"] != "*" else "any shape"
    optional = ", optional" if tensor["optional"] else ""
    alias = f" May be {tensor['may_alias']} itself." if tensor["may_alias"] else ""
    doc = f": {tensor['doc']}" if tensor["doc"] else ""
    written = ", read and written" if tensor["role"] == "inout" else ""
    return f"    {tensor['name']} ({' | '.join(tensor['types'])} {shape}{optional}{written}){doc}{'.' if alias else ''}{alias}"


def describe(schema):
    """The docstring of an operator."""
    lines = [schema["doc"] or schema["name"], "", "    " + schema["formula"], "", "Inputs:"]
    lines += [_tensor_line(each) for each in schema["tensors"] if each["role"] != "output"]
    outputs = [_tensor_line(each) for each in schema["tensors"] if each["role"] == "output"]
    if outputs:
        lines += ["", "Outputs (keywords; made if not given, optional ones where the keyword is True):", *outputs]
    if schema["options"]:
        lines += ["", "Options:"]
    for option in schema["options"]:
        doc = f": {option['doc']}" if option["doc"] else ""
        default = "" if option["default"] is None else f"={default_of(option)!r}"
        lines.append(f"    {option['name']}{default} ({_allowed(option)}{', required' * (not default)}){doc}")
    return "\n".join(lines)


def parameters_of(schema):
    """Parameters in Python's order: of tensors by position and of keywords, each (specification, default or None)."""
    inputs = [each for each in schema["tensors"] if each["role"] != "output"]
    required = 0  # what follows an optional tensor may be a keyword, too
    while required < len(inputs) and not inputs[required]["optional"]:
        required += 1
    positional = [(each, "None" if i >= required else None) for i, each in enumerate(inputs)]
    keywords = [(each, "None") for each in schema["tensors"] if each["role"] == "output"]
    keywords += [(each, None if each["default"] is None else repr(default_of(each))) for each in schema["options"]]
    return positional, keywords


def signature_of(schema, annotation=lambda spec, default: ""):
    """The parameters as Python writes them, each name with its annotation."""
    def text(spec, default):
        return spec["name"] + annotation(spec, default) + (f"={default}" if default else "")

    positional, keywords = parameters_of(schema)
    star = ["*"] * bool(keywords)
    return ", ".join([text(*each) for each in positional] + star + [text(*each) for each in keywords])


def documentation(schema):
    """The docstring of a function of C's: inspect.signature reads its first line."""
    return f"{schema['name']}({signature_of(schema)})\n--\n\n{describe(schema)}"

# SPDX-License-Identifier: Apache-2.0
"""Docstrings and signatures of operators from their schemas."""


def _allowed(option):
    if option["type"] == "boolean":
        return "True or False"
    text = {"real": "a number", "integer": "an integer", "choice": "", "text": "a text"}[option["type"]]
    if option["least"] > float("-inf"):
        text += f" of at least {option['least']:g}"
    if option["most"] < float("inf"):
        text += f"{' and' if 'least' in text else ' of'} at most {option['most']:g}"
    words = ", ".join(repr(word) for word in option["words"])
    return ", or ".join(part for part in (text, words) if part)


def default_of(option):
    """The default as Python has it."""
    text = option["default"]
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
        lines.append(f"    {option['name']}={default_of(option)!r} ({_allowed(option)}){doc}")
    return "\n".join(lines)

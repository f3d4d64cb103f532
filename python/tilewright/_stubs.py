# SPDX-License-Identifier: Apache-2.0
"""Writes ops.pyi from the schemas, when the extension module is built: python _stubs.py PACKAGE_FOLDER."""
import keyword
import pathlib
import sys

_TYPES = {"boolean": "bool", "integer": "int", "real": "float", "text": "str"}


def _option(option, default):
    words = ", ".join(repr(word) for word in option["words"])
    kinds = [_TYPES[option["type"]]] if option["type"] in _TYPES else []
    kinds += [f"Literal[{words}]"] if words else []
    kind = kinds[0] if len(kinds) == 1 else f"Union[{', '.join(kinds)}]"
    return f"{option['name']}: {kind} = {default!r}"


def stub_of(schema, describe, default_of):
    """The definition of one operator."""
    inputs = [each for each in schema["tensors"] if each["role"] != "output"]
    outputs = [each for each in schema["tensors"] if each["role"] == "output"]
    parameters, optional = [], False
    for tensor in inputs:
        optional = optional or tensor["optional"]  # what follows an optional tensor may be a keyword, too
        parameters.append(f"{tensor['name']}: Optional[Tensor] = None" if optional else f"{tensor['name']}: Tensor")
    if outputs or schema["options"]:
        parameters.append("*")
    for tensor in outputs:
        kind = "Union[Tensor, bool, None]" if tensor["optional"] else "Optional[Tensor]"
        parameters.append(f"{tensor['name']}: {kind} = None")
    parameters += [_option(each, default_of(each)) for each in schema["options"]]
    parameters = [each for each in parameters if not keyword.iskeyword(each.partition(":")[0])]
    doc = describe(schema).replace("\\", "\\\\").replace("\n", "\n    ").replace("    \n", "\n")
    return f"def {schema['name']}({', '.join(parameters)}) -> Any:\n    \"\"\"{doc}\n    \"\"\"\n"


def main(folder):
    """Writes the file into the package, which has the extension module."""
    sys.path[0] = str(folder.parent)
    from tilewright import _documentation, ops
    text = ('# Written by _stubs.py from the schemas.\n"""The operators of this build."""\n'
            "from typing import Any, Literal, Optional, Union\n\n"
            "Tensor = Any\n\"\"\"Anything with __dlpack__.\"\"\"\n")
    for name in ops.__all__:
        text += "\n" + stub_of(getattr(ops, name).schema, _documentation.describe, _documentation.default_of)
    (folder / "ops.pyi").write_text(text)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())

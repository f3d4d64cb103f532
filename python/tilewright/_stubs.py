# SPDX-License-Identifier: Apache-2.0
"""Writes ops.pyi from the schemas, when the extension module is built: python _stubs.py PACKAGE_FOLDER."""
import pathlib
import sys

_TYPES = {"boolean": "bool", "integer": "int", "number": "float", "text": "str"}


def _annotation(spec, default):
    if "role" in spec:
        if spec["role"] != "output":
            return ": Optional[_Tensor]" if default else ": _Tensor"
        return ": Union[_Tensor, bool, None]" if spec["optional"] else ": Optional[_Tensor]"
    words = ", ".join(repr(word) for word in spec["words"])
    kinds = [_TYPES[spec["type"]]] if spec["type"] in _TYPES else []
    kinds += [f"Literal[{words}]"] if words else []
    return ": " + (kinds[0] if len(kinds) == 1 else f"Union[{', '.join(kinds)}]")


def stub_of(documentation, schema):
    """The definition of one operator."""
    doc = documentation.describe(schema).replace("\\", "\\\\").replace("\n", "\n    ").replace("    \n", "\n")
    signature = documentation.signature_of(schema, _annotation)
    return f"def {schema['name']}({signature}) -> Any:\n    \"\"\"{doc}\n    \"\"\"\n"


def main(folder):
    """Writes the file into the package, which has the extension module."""
    sys.path[0] = str(folder.parent)
    from tilewright import _documentation, ops
    text = ('# Written by _stubs.py from the schemas.\n"""The operators of this build."""\n'
            "from typing import Any, Literal, Optional, Union\n\n"
            "_Tensor = Any\n\"\"\"Anything with __dlpack__.\"\"\"\n")
    text += f"\n__all__ = {ops.__all__!r}\n"
    for name in ops.__all__:
        text += "\n" + stub_of(_documentation, _documentation.schema(getattr(ops, name)))
    (folder / "ops.pyi").write_text(text)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())

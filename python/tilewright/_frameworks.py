# SPDX-License-Identifier: Apache-2.0
"""How tensors of each library are read and made; called by the extension module.

An adapter has ``maker(type, device)`` (device -1: the host), a function that makes an uninitialised tensor of a shape,
and may have ``maker_here(type, shape, device)``, a function and its arguments that make one where ``current_device()``
is the device, or None; ``zeros(bytes, device)``, ``uses_streams``, and where the library's types have no C exchange API of DLPack either ``describe(tensor)``,
(address, type, shape, strides in elements, read-only, device), or ``capsule(tensor)``, a DLPack capsule; and
``stream(device)``, a handle of CUDA's.
"""
import functools
import sys
from dataclasses import dataclass
from typing import Any, Tuple


@dataclass(frozen=True, eq=False)
class Fp4Pairs:
    """Codes of fp4 (e2m1), two in each byte of an array of uint8, the first in the low bits.

    For libraries without a dtype of such pairs: NumPy, CuPy, JAX. Operators take it as a tensor, and make one where an
    output has the type e2m1.
    """
    bytes: Any

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of the codes: the last mode is twice that of the bytes."""
        *front, last = self.bytes.shape
        return (*front, 2 * last)


def _pairs_maker(make):
    """Makes Fp4Pairs of a shape by a function that makes arrays of uint8."""
    def of(shape):
        if shape[-1] % 2 != 0:
            raise ValueError(f"fp4 codes of shape {shape} do not fill bytes: the last extent is odd")
        return Fp4Pairs(make((*shape[:-1], shape[-1] // 2)))
    return of

# Names of dtypes in NumPy and ml_dtypes, and what the library calls them.
_TYPES = {
    "bool": "u8", "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e8m0fnu": "ue8m0",
}
_NAMES = {ours: theirs for theirs, ours in _TYPES.items() if theirs != "bool"}
_BITS_OF_UNSIGNED = {"bf16": "uint16", "e4m3": "uint8", "e5m2": "uint8", "ue8m0": "uint8"}


def _type_of(dtype_name):
    name = _TYPES.get(dtype_name)
    if dtype_name == "float4_e2m1fn":
        raise ValueError("an array has the dtype float4_e2m1fn, whose elements take a byte each; give pairs in bytes as "
                         "tilewright.Fp4Pairs(array of uint8)")
    if name is None:
        raise ValueError(f"an array has the dtype {dtype_name}, which no operator takes; "
                         f"they take {', '.join(_TYPES)}")
    return name


def _strides(array):
    size = array.dtype.itemsize
    if any(step % size for step in array.strides):
        raise ValueError(f"an array of dtype {array.dtype} has strides of {array.strides} bytes, "
                         "which are no whole elements; copy it first")
    return tuple(step // size for step in array.strides)


def _numpy_dtype(numpy, name):
    """The dtype; unsigned integers of the same width for what NumPy lacks where there is no ml_dtypes."""
    theirs = _NAMES.get(name)
    if theirs is None:
        raise ValueError(f"NumPy has no dtype for outputs of type {name}; give the output as a keyword")
    if name in _BITS_OF_UNSIGNED:
        try:
            import ml_dtypes
        except ImportError:
            return numpy.dtype(_BITS_OF_UNSIGNED[name])
        return numpy.dtype(getattr(ml_dtypes, theirs))
    return numpy.dtype(theirs)


class _NumPy:
    uses_streams = True

    def describe(self, array):
        if not array.dtype.isnative:
            raise ValueError(f"an array has the dtype {array.dtype.str} of foreign byte order; convert it first")
        address, read_only = array.__array_interface__["data"]
        return address, _type_of(array.dtype.name), array.shape, _strides(array), read_only, -1

    def maker(self, name, device):
        if name == "e2m1":
            return _pairs_maker(self.maker("u8", device))
        numpy = sys.modules["numpy"]
        return functools.partial(numpy.empty, dtype=_numpy_dtype(numpy, name))


class _Torch:
    uses_streams = True

    def __init__(self):
        import torch
        self._torch = torch
        # What the code that torch.compile generates allocates by: without a parser of arguments and a dispatcher.
        guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
        self._strided = {where: getattr(guards, f"_empty_strided_{where}", None) for where in ("cpu", "cuda")}
        self.current_device = getattr(torch._C, "_cuda_getDevice", None)
        self._dtypes = {ours: getattr(torch, theirs) for ours, theirs in _NAMES.items() if hasattr(torch, theirs)}
        self._names = {dtype: ours for ours, dtype in self._dtypes.items()}
        self._names[torch.bool] = "u8"
        if hasattr(torch, "float4_e2m1fn_x2"):  # its element is a pair, the last mode counts these
            self._dtypes["e2m1"] = torch.float4_e2m1fn_x2
            self._names[torch.float4_e2m1fn_x2] = "e2m1"
        self._devices = {-1: torch.device("cpu")}

    def dtype(self, name):
        if name not in self._dtypes:
            raise ValueError(f"PyTorch has no dtype for outputs of type {name}; give the output as a keyword")
        return self._dtypes[name]

    def type_name(self, tensor):
        name = self._names.get(tensor.dtype)
        if name is None:
            raise ValueError(f"a tensor has the dtype {tensor.dtype}, which no operator takes")
        return name

    def describe(self, tensor):
        """For versions before the C exchange API."""
        if tensor.layout is not self._torch.strided or tensor.device.type not in ("cpu", "cuda"):
            raise ValueError(f"a tensor with {tensor.layout} on {tensor.device} is none that an operator takes")
        device = tensor.device.index if tensor.device.type == "cuda" else -1
        return tensor.data_ptr(), *self.typed_layout(tensor), False, device

    def typed_layout(self, tensor):
        """Type, shape and strides of single elements."""
        name, shape, strides = self.type_name(tensor), [int(each) for each in tensor.shape], tensor.stride()
        if name != "e2m1":
            return name, tuple(shape), tuple(int(each) for each in strides)
        if not shape or strides[-1] != 1:
            raise ValueError("a tensor has pairs of e2m1 that do not lie side by side along the last mode")
        return name, (*shape[:-1], 2 * shape[-1]), (*(2 * int(each) for each in strides[:-1]), 1)

    @staticmethod
    def shape(shape, name):
        """PyTorch's shape of a tensor of this type."""
        return (*shape[:-1], shape[-1] // 2) if name == "e2m1" else shape

    def maker(self, name, device):
        empty = functools.partial(self._torch.empty, dtype=self.dtype(name), device=self._device(device))
        return empty if name != "e2m1" else lambda shape: empty(self.shape(shape, name))

    def maker_here(self, name, shape, device):
        make = self._strided["cpu" if device < 0 else "cuda"]
        if make is None or device >= 0 and self.current_device is None:
            return None
        shape, strides = self.shape(tuple(shape), name), [1]
        for extent in shape[:0:-1]:
            strides.insert(0, strides[0] * max(extent, 1))
        return make, (shape, tuple(strides[:len(shape)]), self.dtype(name))

    def zeros(self, size, device):
        return self._torch.zeros(size, dtype=self._torch.uint8, device=self._device(device))

    def stream(self, device):
        return self._torch.cuda.current_stream(device).cuda_stream

    def _device(self, index):
        if index not in self._devices:
            self._devices[index] = self._torch.device("cuda", index)
        return self._devices[index]


class _CuPy:
    uses_streams = True

    def __init__(self):
        import cupy
        self._cupy = cupy

    def describe(self, array):
        return array.data.ptr, _type_of(array.dtype.name), array.shape, _strides(array), False, array.device.id

    def maker(self, name, device):
        if name == "e2m1":
            return _pairs_maker(self.maker("u8", device))

        def make(shape):
            with self._cupy.cuda.Device(device):
                return self._cupy.empty(shape, dtype)

        dtype = _numpy_dtype(sys.modules["numpy"], name)
        return make

    def zeros(self, size, device):
        with self._cupy.cuda.Device(device):
            return self._cupy.zeros(size, "uint8")

    def stream(self, device):
        return self._cupy.cuda.get_current_stream(device).ptr


class _JAX:
    uses_streams = False  # XLA has streams of its own: what it queued is waited for, and so are launches

    def __init__(self):
        import jax
        self._jax = jax

    def capsule(self, array):
        return array.block_until_ready().__dlpack__()

    def maker(self, name, device):
        if name == "e2m1":
            return _pairs_maker(self.maker("u8", device))

        def make(shape):
            return jax.numpy.empty(shape, dtype, device=where).block_until_ready()

        jax, dtype = self._jax, _numpy_dtype(sys.modules["numpy"], name)
        where = jax.devices("cpu")[0] if device < 0 else jax.devices("cuda")[device]
        return make

    def zeros(self, size, device):
        return self.maker("u8", device)((size,))  # XLA's empty arrays are 0


class _AnyDlpack:
    """A library that is not known: outputs have to be given, and the default stream is used."""
    uses_streams = False

    def capsule(self, tensor):
        return tensor.__dlpack__()

    def maker(self, name, device):
        raise ValueError(f"an output of type {name} cannot be made by the library of the first tensor; give it as a "
                         "keyword")

    def zeros(self, size, device):
        raise ValueError("the library of the first tensor cannot make the workspace that the operator needs; give a "
                         "tensor of PyTorch, CuPy or JAX first")


class _NoArray:
    uses_streams = True


_KNOWN = {"numpy": _NumPy, "torch": _Torch, "cupy": _CuPy, "jax": _JAX, "jaxlib": _JAX}
_made = {}


def adapter_of(kind):
    """The adapter for tensors of this type; subclasses are as their bases."""
    for base in kind.__mro__:
        make = _KNOWN.get(base.__module__.partition(".")[0])
        if make is not None and hasattr(kind, "__dlpack__"):
            if make not in _made:
                _made[make] = make()
            return _made[make]
    return _AnyDlpack() if hasattr(kind, "__dlpack__") else _NoArray()

# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's kernels as functions, where flashinfer_kernels.cu was built and FLASHINFER_KERNELS names the library.

The wheel flashinfer-python has headers only. With D its folder flashinfer/data:

    nvcc -O3 -std=c++17 -arch=sm_90a -shared -Xcompiler -fPIC -DENABLE_BF16 -DFLASHINFER_ENABLE_BF16 -I D/include \\
      -I D/cccl/libcudacxx/include -I D/cccl/cub -I D/cccl/thrust bench/peers/flashinfer_kernels.cu -o LIBRARY
"""
import ctypes
import os

import torch

_path = os.environ.get("FLASHINFER_KERNELS")
_library = ctypes.CDLL(_path) if _path else None
AVAILABLE = _library is not None


def _passed(argument):
    if isinstance(argument, torch.Tensor):
        return ctypes.c_void_p(argument.data_ptr())
    return ctypes.c_float(argument) if isinstance(argument, float) else ctypes.c_uint32(argument)


def call(name, *arguments):
    """Calls a function of the library on the current stream."""
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    status = getattr(_library, name)(*(_passed(each) for each in arguments), stream)
    if status != 0:
        raise RuntimeError(f"{name} of FlashInfer: CUDA's error {status}")

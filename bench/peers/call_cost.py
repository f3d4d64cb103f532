#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what a call from Python costs the host, beside the same call in C++ and PyTorch's own operator.

    python3 bench/peers/call_cost.py [--json OUT] [--commit NAME]

The package has to be importable. The tensors are one row of 1024, so that the GPU keeps up; figures are medians of
batches, each after a synchronisation. A fresh process without PyTorch then imports the package and calls an
operator whose kernel is on disk; the CUDA context is made before, and its time is given beside.
"""
import argparse
import ctypes
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

BATCH = 200
BATCHES = 41
WIDTH = 1024


class Tensor(ctypes.Structure):
    """DLManagedTensor, flattened."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
                ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Row:
    """A row of f32 in memory of the driver's, whatever it holds, for a process without any framework."""

    def __init__(self, driver):
        address = ctypes.c_uint64()
        check(driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * WIDTH)))
        self._shape = (ctypes.c_int64 * 2)(1, WIDTH)
        self._tensor = Tensor(address.value, 2, 0, 2, 2, 32, 1, self._shape, None, 0, None, None)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._capsule = make(ctypes.addressof(self._tensor), b"dltensor", None)

    def __dlpack__(self, **_):
        return self._capsule


def check(status):
    if status != 0:
        raise RuntimeError(f"the CUDA driver answers {status}")


def first_call():
    """In a process of its own: milliseconds of the context, and of import and first call."""
    driver = ctypes.CDLL(os.environ.get("TILEWRIGHT_CUDA_DRIVER", "libcuda.so.1"))
    begin = time.perf_counter()
    check(driver.cuInit(0))
    context = ctypes.c_void_p()
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(driver.cuCtxPushCurrent_v2(context))
    made = time.perf_counter()
    x, y = Row(driver), Row(driver)
    start = time.perf_counter()
    import tilewright
    imported = time.perf_counter()
    tilewright.ops.rms_norm(x, y=y)
    check(driver.cuCtxSynchronize())
    end = time.perf_counter()
    compiled = len(tilewright.cache.compiled())
    print(json.dumps({"context_ms": 1e3 * (made - begin), "import_ms": 1e3 * (imported - start),
                      "call_ms": 1e3 * (end - imported), "compiled": compiled}))


def fresh_process():
    answer = subprocess.run([sys.executable, os.path.abspath(__file__), "--first-call"], check=True, text=True,
                            stdout=subprocess.PIPE)
    return json.loads(answer.stdout.splitlines()[-1])


def medians_us(ways, synchronize):
    """Of a call of each way, from batches that take turns and each start with an idle GPU."""
    times = {way: [] for way in ways}
    for _ in range(BATCHES + 1):
        for way, batch in ways.items():
            synchronize()
            times[way].append(batch() / BATCH * 1e6)
    synchronize()
    return {way: statistics.median(each[1:]) for way, each in times.items()}


def repeated(call):
    def batch():
        begin = time.perf_counter()
        for _ in range(BATCH):
            call()
        return time.perf_counter() - begin
    return batch


def calls():
    """Host cost in µs of each way to call rms_norm with three tensors."""
    import torch

    import tilewright
    import tilewright.torch_ops
    x = torch.randn(1, WIDTH, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(WIDTH, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    ours = tilewright.ops.rms_norm
    theirs = torch.nn.functional.rms_norm
    ways = {
        "C++": lambda: ours.__self__._seconds_in_cpp(BATCH, x, w, y=y),
        "output given": repeated(lambda: ours(x, w, y=y)),
        "output and option given": repeated(lambda: ours(x, w, y=y, eps=1e-5)),
        "output made": repeated(lambda: ours(x, w)),
        "torch.ops.tilewright": repeated(lambda: torch.ops.tilewright.rms_norm(x, w)),
        "torch.empty_like": repeated(lambda: torch.empty_like(x)),
        "torch.empty": repeated(lambda: torch.empty(x.shape, dtype=x.dtype, device=x.device)),
        "torch.nn.functional": repeated(lambda: theirs(x, (WIDTH,), w, 1e-6)),
    }
    context = {"device": torch.cuda.get_device_name(), "driver": f"CUDA {torch.version.cuda}",
               "assembler": f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}"}
    return context, medians_us(ways, torch.cuda.synchronize)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write Google Benchmark's format there")
    parser.add_argument("--commit", default="unknown", help="named in the JSON as what was measured")
    parser.add_argument("--first-call", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first_call:
        return first_call()
    fresh_process()  # puts the kernel on disk
    fresh = [fresh_process() for _ in range(5)]
    if any(each["compiled"] for each in fresh):
        print("the cache is off, or a driver's assembler keeps no code: first calls compile")
    context, ways = calls()
    rows = [{"name": f"rms_norm, three tensors: {way}", "real_time": us, "time_unit": "us",
             "of_peer": us / ways["C++"], "above_peer": us - ways["C++"]} for way, us in ways.items()]
    for key in ("context_ms", "import_ms", "call_ms"):
        rows.append({"name": f"fresh process: {key[:-3]}", "real_time": statistics.median(each[key] for each in fresh),
                     "time_unit": "ms"})
    for row in rows:
        above = f", {row['above_peer']:+.2f} us beside C++" if "above_peer" in row else ""
        print(f"{row['name']}: {row['real_time']:.2f} {row['time_unit']}{above}")
    if arguments.json:
        context.update(date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                       commit=arguments.commit)
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"context": context, "benchmarks": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()

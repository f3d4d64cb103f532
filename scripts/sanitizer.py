#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Planted defects under compute-sanitizer and in the emulator: what the one reports, the other must report too.

usage: sanitizer.py --program build/tilewright --json FILE    on a machine with a GPU
       sanitizer.py launch LAUNCHES.json                      what the tools watch

The defects: test/data/ptx_corpus/bugs, the pairs of test/data/ptx_own/defects.cu, and the corpus kernels with one barrier, fence
or wait deleted. Those that may wait for ever are left out: no tool ends them. The kernels without a defect must be
clean in the emulator, and what they give on the GPU must be what the emulator gives.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
DATA = os.path.join(ROOT, "test", "data")
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
SYNCHRONISATION = re.compile(
    r"(?m)^[ \t]*(?:@!?%\w+[ \t]+)?(?:bar\.sync|bar\.warp\.sync|barrier\.sync|membar|fence|cp\.async\.wait|wgmma\.fence)[^;]*;")

# entry, grid, block, buffers in bytes, numbers
BUGS = [
    ("bug_missing_barrier", 1, 64, [256], []), ("bug_missing_syncwarp", 1, 32, [128], []),
    ("bug_uninit_shared", 1, 64, [256], []), ("bug_oob_global", 1, 32, [128, 128], [32]),
    ("bug_divergent_barrier", 1, 32, [128], []), ("bug_scope", 2, 1, [4, 4, 4], []),
    ("bug_cp_async_no_wait", 1, 32, [512, 512], []), ("bug_exit_with_bulk", 1, 32, [128], []),
]
# entry, grid, block, whether `in` is zeros, dynamic shared memory
PAIRS = [
    ("warp_specialised", 1, 64, 0, 0), ("copy_ring", 1, 64, 0, 0), ("copy_exchange", 1, 64, 0, 0), ("tile_sum", 1, 64, 0, 0),
    ("neighbour", 2, 64, 0, 0), ("lock", 2, 64, 1, 0), ("publish", 2, 32, 1, 0), ("last_block", 3, 64, 1, 0),
    ("histogram", 1, 64, 0, 0), ("half_shuffle", 1, 64, 0, 0), ("divergent_barrier", 1, 64, 0, 0),
    ("beyond_shared", 1, 64, 0, 256), ("vector_load", 1, 64, 0, 0), ("heap", 1, 64, 0, 0), ("overlap", 3, 32, 0, 0),
    ("warp_sum", 1, 64, 0, 0), ("reused_tile", 1, 64, 0, 0), ("half_written", 1, 64, 0, 0), ("bulk_phases", 1, 64, 0, 0),
    ("bulk_store", 1, 64, 0, 0), ("scopes", 2, 32, 1, 0),
]
CORPUS = ["k01_reduce_shfl/reduce_shfl", "k02_gemm_tiled/gemm_tiled", "k04_softmax/softmax_rows", "k06_cp_async_pipeline/pipe2",
          "k06_cp_async_pipeline/pipe3_prim", "k09_cub_scan/block_exscan", "k16_tma_bulk/bulk_copy", "k20_mma_ldmatrix/mma_bf16"]

# What a tool reports of a kernel that is right, and why that is no miss.
EXPLAINED = {
    "corpus k06_cp_async_pipeline/pipe2": "synccheck's 'Missing wait': consumers of a cuda::pipeline arrive at the barrier that says a "
    "stage is free and never wait there; PTX allows threads that only arrive, and the results are right",
}


# ---- launches through the driver ----

def check(code, what):
    if code != 0:
        raise RuntimeError(f"{what}: error {code}")


def launch(cuda, modules, job):
    """Runs a launch; what its buffers hold afterwards."""
    function = ctypes.c_void_p()
    if job["ptx"] not in modules:
        module = ctypes.c_void_p()
        with open(job["ptx"], "rb") as file:
            check(cuda.cuModuleLoadData(ctypes.byref(module), file.read() + b"\0"), "cuModuleLoadData")
        modules[job["ptx"]] = module
    module = modules[job["ptx"]]
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, job["entry"].encode()), "cuModuleGetFunction")
    values, buffers = [], []
    for argument in job["arguments"]:
        if "buffer" in argument:
            data = bytes.fromhex(argument["buffer"])
            address = ctypes.c_uint64()
            check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(len(data))), "cuMemAlloc")
            check(cuda.cuMemcpyHtoD_v2(address, data, ctypes.c_size_t(len(data))), "cuMemcpyHtoD")
            buffers.append((address, len(data)))
            values.append(address)
        else:
            data = bytes.fromhex(argument["scalar"])
            values.append((ctypes.c_char * len(data)).from_buffer_copy(data))
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
    if job["smem"] > 48 * 1024:
        check(cuda.cuFuncSetAttribute(function, 8, job["smem"]), "cuFuncSetAttribute")
    check(cuda.cuLaunchKernel(function, *job["grid"], *job["block"], job["smem"], None, pointers, None), "cuLaunchKernel")
    check(cuda.cuCtxSynchronize(), "the kernel")
    outputs = []
    for address, size in buffers:
        data = ctypes.create_string_buffer(size)
        check(cuda.cuMemcpyDtoH_v2(data, address, ctypes.c_size_t(size)), "cuMemcpyDtoH")
        outputs.append(data.raw.hex())
    return outputs


def launch_all(path):
    """Runs the launches of a file, one after another, and writes their outputs beside it as far as it gets."""
    with open(path) as file:
        jobs = json.load(file)
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    outputs, modules = {}, {}
    for job in jobs:
        try:
            outputs[job["name"]] = launch(cuda, modules, job)
        except RuntimeError as error:
            outputs[job["name"]] = str(error)
        with open(path + ".out", "w") as file:
            json.dump(outputs, file)


# ---- the defects as launches ----

def number(value):
    return {"scalar": struct.pack("<i", value).hex()}


def zeros(size):
    return {"buffer": bytes(size).hex()}


def read_case(path):
    """A `.case` manifest as a launch, with what its buffers must hold: [(argument, bytes, how they are compared)]."""
    folder, job, expected = os.path.dirname(path), {"smem": 0, "arguments": []}, []
    for line in open(path):
        words = line.split()
        if not words:
            continue
        if words[0] == "entry":
            job["entry"] = words[1]
        elif words[0] in ("grid", "block"):
            job[words[0]] = [int(w) for w in words[1:4]]
        elif words[0] == "smem":
            job["smem"] = int(words[1])
        elif words[0] == "arg" and words[1] == "buf":
            job["arguments"].append({"buffer": open(os.path.join(folder, words[2]), "rb").read().hex()})
            if "expect" in words:
                exact = "cmp" not in words or words[words.index("cmp") + 1] == "exact"
                want = open(os.path.join(folder, words[words.index("expect") + 1]), "rb").read()
                buffer = sum("buffer" in a for a in job["arguments"]) - 1
                expected.append((buffer, want.hex(), exact))
        elif words[0] == "arg":
            kinds = {"i32": "<i", "i64": "<q", "f32": "<f", "f64": "<d"}
            value = float.fromhex(words[2]) if words[1][0] == "f" else int(words[2], 0)
            job["arguments"].append({"scalar": struct.pack(kinds[words[1]], value).hex()})
    return job, expected


def jobs(work):
    """Each defect and each kernel without one: (name, launch, arguments of `emulate`, right bytes or None)."""
    bugs = os.path.join(DATA, "ptx_corpus", "bugs", "sm_90a.ptx")
    for entry, grid, block, buffers, numbers in BUGS:
        job = {"ptx": bugs, "entry": entry, "grid": [grid, 1, 1], "block": [block, 1, 1], "smem": 0,
               "arguments": [zeros(b) for b in buffers] + [number(n) for n in numbers]}
        words = [bugs, "--entry", entry, "--grid", str(grid), "--block", str(block)]
        for size in buffers:
            words += ["--arg", f"out:s32:{size // 4}"]
        for n in numbers:
            words += ["--arg", f"i32:{n}"]
        yield "bugs " + entry, job, words, None
    own = os.path.join(DATA, "ptx_own", "defects_sm_90a.ptx")
    iota = {"buffer": struct.pack("<1024i", *range(1024)).hex()}
    for name, grid, block, zero, smem in PAIRS:
        for suffix in ("_clean",) if name in ("warp_specialised", "bulk_phases") else ("_clean", "_bad"):
            job = {"ptx": own, "entry": name + suffix, "grid": [grid, 1, 1], "block": [block, 1, 1], "smem": smem,
                   "arguments": [zeros(4096) if zero else iota, zeros(4096), number(256)]}
            words = [own, "--entry", name + suffix, "--grid", str(grid), "--block", str(block), "--smem", str(smem),
                     "--arg", "out:s32:1024" if zero else "iota:s32:1024", "--arg", "out:s32:1024", "--arg", "i32:256"]
            yield "pairs " + name + suffix, job, words, [] if suffix == "_clean" else None
    for name in CORPUS:
        case = os.path.join(DATA, "ptx_corpus", name + ".case")
        ptx = os.path.join(os.path.dirname(case), "sm_90a.ptx")
        job, expected = read_case(case)
        yield "corpus " + name, {**job, "ptx": ptx}, [ptx, "--case", case], expected
        text = open(ptx).read()
        begin = text.index(".entry " + job["entry"])
        end = text.find(".entry ", begin + 1)
        for match in SYNCHRONISATION.finditer(text, begin, end if end > 0 else len(text)):
            line = 1 + text.count("\n", 0, match.start())
            mutant = os.path.join(work, name.replace("/", "_") + f"_{line}.ptx")
            # A name of its own tells the tools' reports apart.
            entry = f"{job['entry']}_without_{line}"
            changed = text[:match.start()] + text[match.end():]
            with open(mutant, "w") as file:
                file.write(re.sub(rf"(\.entry\s+){job['entry']}\b", rf"\g<1>{entry}", changed))
            own_case = mutant + ".case"
            with open(own_case, "w") as file:
                for each in open(case):
                    words = each.split()
                    if words[:1] == ["entry"]:
                        each = f"entry {entry}\n"
                    elif words[:2] == ["arg", "buf"]:
                        files = {2} | ({words.index("expect") + 1} if "expect" in words else set())
                        each = " ".join(os.path.relpath(os.path.join(os.path.dirname(case), w), work) if i in files else w
                                        for i, w in enumerate(words)) + "\n"
                    file.write(each)
            yield f"corpus {name} without line {line}", {**job, "entry": entry, "ptx": mutant}, [mutant, "--case", own_case], None


# ---- both judges ----

def sanitize(tool, path, seconds):
    """What a tool reports of the launches of a file, by kernel: the words of its first error."""
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "100000", "--destroy-on-device-error", "kernel",
               sys.executable, os.path.abspath(__file__), "launch", path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    reported, header = {}, ""
    for line in output.splitlines():
        line = line.lstrip("= ").strip()
        if re.search(r"Invalid|Uninit|Race reported|Barrier error|hazard|Misaligned|Divergent", line):
            header = line
        for kernel in re.findall(r"\b(?:at|in|between \w+ access at) (\w+)\S*\+0x", line):
            if header:
                reported.setdefault(kernel, header)
    with open(path + ".log", "w") as file:
        file.write(output)
    return reported


def emulate(program, words):
    """Exit code and kinds of the findings."""
    kinds, code = [], 0
    for mode in ("late", "random"):
        done = subprocess.run([program, "emulate", *words, "--json", "--delivery", mode], capture_output=True, text=True,
                              timeout=120)
        code = max(code, done.returncode)
        kinds += re.findall(r'"kind": ?"(\w+)"', done.stdout)
    return code, sorted(set(kinds))


def context(arguments):
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    device, _, driver = asked.stdout.strip().partition(", ")
    return {"device": device, "driver": driver, "commit": arguments.commit, "seconds_for_the_tools": arguments.seconds}


def write_jobs(work, name, entries):
    path = os.path.join(work, name + ".json")
    with open(path, "w") as file:
        json.dump([{**job, "name": each} for each, job, _, _ in entries], file)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--commit", default="unknown", help="named in the JSON as what was measured")
    parser.add_argument("--seconds", type=int, default=120, help="for the tools; what they have not reached by then is left out")
    parser.add_argument("--batches", type=int, default=3, help="processes of a tool")
    parser.add_argument("--only", default="", help="a regular expression over the names")
    parser.add_argument("--keep", help="a folder for the tools' output")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(32) as pool:
        work = arguments.keep or temporary
        os.makedirs(work, exist_ok=True)
        entries = [e for e in jobs(work) if re.search(arguments.only, e[0])]
        right = write_jobs(work, "right", [e for e in entries if e[3] is not None])
        plain = pool.submit(subprocess.run, [sys.executable, os.path.abspath(__file__), "launch", right], timeout=arguments.seconds)
        runs = []
        for batch in range(arguments.batches):
            for tool in TOOLS:
                path = write_jobs(work, f"{tool}_{batch}", entries[batch::arguments.batches])
                runs.append((tool, path, pool.submit(sanitize, tool, path, arguments.seconds)))
        judged = list(pool.map(lambda e: emulate(arguments.program, e[2]), entries))
        rows = {e[1]["entry"]: {"name": e[0], "emulator": kinds, "emulator_exit": code, "sanitizer": {}, "judged_by": 0}
                for e, (code, kinds) in zip(entries, judged)}
        for tool, path, run in runs:
            for kernel, told in run.result().items():
                if kernel in rows:
                    rows[kernel]["sanitizer"][tool] = told
            if os.path.exists(path + ".out"):
                reached = json.load(open(path + ".out"))
                for row in rows.values():
                    row["judged_by"] += row["name"] in reached
        plain.exception()
        outputs = json.load(open(right + ".out")) if os.path.exists(right + ".out") else {}
        for name, job, _, expected in entries:
            got = outputs.get(name)
            if got is not None:
                same = isinstance(got, list) and all(got[i] == want for i, want, exact in expected or [] if exact)
                rows[job["entry"]]["gpu_output"] = "right" if same else "wrong" if isinstance(got, list) else got
    for row in rows.values():
        unseen = bool(row["sanitizer"]) and row["emulator_exit"] == 0
        if unseen and row["name"] in EXPLAINED:
            row["explained"] = EXPLAINED[row["name"]]
        row["missed"] = unseen and "explained" not in row
    summary = {"launches": len(rows), "judged_by_all_tools": sum(r["judged_by"] == len(TOOLS) for r in rows.values()),
               "reported_by_sanitizer": sum(bool(r["sanitizer"]) for r in rows.values()),
               "reported_by_emulator": sum(r["emulator_exit"] != 0 for r in rows.values()),
               "explained": [r["name"] for r in rows.values() if "explained" in r],
               "missed": [r["name"] for r in rows.values() if r["missed"]]}
    with open(arguments.json, "w") as file:
        json.dump({"context": context(arguments), "summary": summary, "rows": list(rows.values())}, file, indent=1)
        file.write("\n")
    print(json.dumps(summary))
    return 1 if summary["missed"] else 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "launch":
        launch_all(sys.argv[2])
    else:
        sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""How the scripts of this folder time an operator beside its peers: one process, one stream, graph replay, cold tensors.

Every way is captured into a graph of launches on rotating tensors, more than four times the L2 cache in all, and
replayed behind a flushed cache, as `tilewright bench` does. The ways take turns; figures are medians. A way may be
a list of variants (Triton's warps and blocks): the fastest in short rounds is the one that counts. A plain copy of
as many bytes as the problem touches takes its turn, too: the floor, which bounds what can be gained.
"""
import argparse
import collections
import datetime
import importlib.metadata
import json
import math
import re
import statistics
import subprocess
import sys
import time

import torch
import torch._inductor.config

from tilewright import ops

OURS = "tilewright"
FLOOR = "floor"
GENERAL = "general"  # our own more general operators, timed for a figure of its own
NO_PEERS = (OURS, FLOOR, GENERAL)
ROUNDS = 15
CHOOSING_ROUNDS = 3
L2_BYTES = 60 << 20
ROTATING_BYTES = 4 * L2_BYTES
MOST_COPIES = 200
REPLAY_US = 400  # long against what events resolve


class Case:
    """One problem: `make()` returns the tensors of one run, the last `outputs` of them written by it.

    `function` computes the outputs from the other tensors with PyTorch, which is a peer as it is and compiled, and
    what every way has to agree with; without it they have to agree with ours. Ways are functions of all tensors;
    what they return instead of writing the outputs is kept while the graph lives, so that it rotates, too. Outputs
    of uint8 are pairs of fp4 codes. `strays` is the share of an output's numbers that may be further off than the
    tolerance: codes at a rounding's boundary. With `in_place` the function is given the outputs, too, and writes them.
    """

    def __init__(self, operator, problem, make, outputs, function=None, tolerance=2e-2, bytes_=0, strays=0.0,
                 in_place=False):
        self.operator, self.problem, self.make = operator, problem, make
        self.outputs, self.function, self.tolerance, self.strays = outputs, function, tolerance, strays
        self.bytes = bytes_  # that a run reads and writes, where they are not those of the tensors that rotate
        self.in_place = in_place
        self.unchecked = set()  # ways that do the same work on other numbers
        self.ways = {}
        if function:
            self.add_function(function)

    def add_function(self, function):
        """PyTorch's ways by this function; by another one, too, if it is called again."""
        compiled = torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False, fullgraph=True)
        self.ways.setdefault("torch", []).append(lambda *tensors: function(*self._given(tensors)))
        self.ways.setdefault("compile", []).append(lambda *tensors: compiled(*self._given(tensors)))

    def _given(self, tensors):
        return tensors if self.in_place else tensors[:-self.outputs]

    def results(self, run, tensors):
        """What a way computes, on tensors of its own: some change in place."""
        tensors = [each.clone() for each in tensors]
        returned = run(*tensors)
        written = tensors[-self.outputs:]
        if isinstance(returned, torch.Tensor):
            returned = [returned]
        if not isinstance(returned, (list, tuple)):  # Triton returns the kernel
            return written
        return [each.view(own.dtype) if each.dtype == torch.uint8 else each  # bytes of a type without arithmetic
                for each, own in zip(returned, written)]

    def expected(self, tensors):
        reference = self.function and (lambda *each: self.function(*self._given(each)))
        return self.results(reference or self.ways[OURS], tensors)

    def check(self, way, found, expected):
        """Throws where a way's outputs, of whatever type, are not what is expected."""
        for i, (mine, wanted) in enumerate(zip(found, expected, strict=True)):
            mine, wanted = _numbers(mine), _numbers(wanted)
            wanted = wanted.view(mine.shape)
            if self.strays:
                close = torch.isclose(mine, wanted, rtol=self.tolerance, atol=self.tolerance)
                if close.logical_not().sum().item() <= self.strays * close.numel():
                    continue
            torch.testing.assert_close(
                mine, wanted, rtol=self.tolerance, atol=self.tolerance,
                msg=lambda text, i=i: f"{self.operator} {self.problem}: {way}, output {i}: {text}")


def _numbers(tensor):
    """In f32; those of fp4 codes, two in a byte, if it has bytes."""
    if tensor.dtype != torch.uint8:
        return tensor.float()
    numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=tensor.device)
    codes = torch.stack((tensor & 0xF, tensor >> 4), -1).flatten(-2).int()
    return torch.cat((numbers, -numbers))[codes]


class _Replay:
    """The launches of one way as a graph."""

    def __init__(self, run, copies, launches, stream):
        kept = collections.deque(maxlen=len(copies))
        self._graph = torch.cuda.CUDAGraph()
        self._launches, self._stream = launches, stream
        with torch.cuda.graph(self._graph, stream=stream):
            for i in range(launches):
                kept.append(run(*copies[i % len(copies)]))

    def us(self, flush):
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(self._stream)
        self._graph.replay()
        end.record(self._stream)
        end.synchronize()
        return start.elapsed_time(end) * 1000 / self._launches


def _median_us(replays, rounds, flush):
    times = [[] for _ in replays]
    for round_ in range(rounds + 1):  # the first warms up
        for replay, into in zip(replays, times):
            us = replay.us(flush)
            if round_ > 0:
                into.append(us)
    return [statistics.median(each) for each in times]


def _rotating(make, bytes_=0):
    """Tensors of as many runs as it takes to pass the cache, and the bytes that a run touches."""
    copies = [make(), make()]
    size = sum(each.numel() * each.element_size() for each, other in zip(*copies)
               if each.data_ptr() != other.data_ptr())  # others are the same in all runs
    while len(copies) * size < ROTATING_BYTES and len(copies) < MOST_COPIES:
        copies.append(make())
    return copies, bytes_ or size


def _launches(copies, bytes_):
    """How many make a replay."""
    us_at_least = bytes_ / 4.8e6  # at the memory's own rate
    return max(len(copies), 4, min(MOST_COPIES, math.ceil(REPLAY_US / max(us_at_least, 1.5))))


def _floor(bytes_, launches, stream):
    """Copies by our own kernel, which read half of the bytes and write as many."""
    words = 4 * math.ceil(bytes_ / 32)  # of four bytes, in accesses of 16
    copies, _ = _rotating(lambda: [torch.zeros(1, words, device="cuda", dtype=torch.int32) for _ in range(2)])

    def copy(src, dst):
        ops.tile_copy(src, dst=dst)

    copy(*copies[0])  # compiles it, which a capture must not
    stream.synchronize()
    return _Replay(copy, copies, launches, stream)


def right_ways(case, tensors):
    """Pairs (way, variant) whose results are right; compiles them."""
    expected = case.expected(tensors)
    for way, runs in case.ways.items():
        for run in runs if isinstance(runs, list) else [runs]:
            try:
                found = case.results(run, tensors)
                if way not in case.unchecked:
                    case.check(way, found, expected)
            except Exception as error:  # whatever another version of a peer has against the call
                if way == OURS:
                    raise
                print(f"{case.operator} {case.problem}: {way} is left out: {type(error).__name__}: {str(error)[:200]}",
                      file=sys.stderr)
                continue
            yield way, run


def times_of(case, stream, flush):
    """Median µs of each way and of the floor, and the bytes that the floor copies."""
    copies, bytes_ = _rotating(case.make, case.bytes)
    launches = _launches(copies, bytes_)
    pairs = list(right_ways(case, copies[0]))
    stream.synchronize()
    ways = [way for way, _ in pairs]
    replays = [_Replay(run, copies, launches, stream) for _, run in pairs]
    if len(set(ways)) < len(ways):
        best = {}
        for way, replay, us in zip(ways, replays, _median_us(replays, CHOOSING_ROUNDS, flush)):
            if way not in best or us < best[way][0]:
                best[way] = us, replay
        ways, replays = list(best), [replay for _, replay in best.values()]
    ways.append(FLOOR)
    replays.append(_floor(bytes_, launches, stream))
    return dict(zip(ways, _median_us(replays, ROUNDS, flush))), bytes_


def row_of(case, times, bytes_):
    """A row in Google Benchmark's format: our time, the others', the best peer, what we gain over it and what anyone could."""
    peers = {way: us for way, us in times.items() if way not in NO_PEERS}
    if not peers:
        raise ValueError("no peer is left to compare with")
    best = min(peers, key=peers.get)
    row = {"name": f"{case.operator} {case.problem}", "real_time": times[OURS], "time_unit": "us", "bytes": bytes_}
    row.update({f"{way}_us": us for way, us in times.items() if way != OURS})
    row.update(peer=best, peer_us=peers[best], gain=peers[best] / times[OURS], attainable=peers[best] / times[FLOOR])
    if GENERAL in times:
        row["over_general"] = times[GENERAL] / times[OURS]
    return row


def at_ends(first, others, tokens):
    """(shape, rows): the first shapes at all numbers of rows, the others at the fewest and the most."""
    yield from ((shape, t) for shape in first for t in tokens)
    yield from ((shape, t) for shape in others for t in sorted({tokens[0], tokens[-1]}))


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(each) for each in values))


def _means(name, rows):
    def mean(key):
        return geometric_mean([row[key] for row in rows if key in row])
    general = f", over general {mean('over_general'):.3f}" if any("over_general" in row for row in rows) else ""
    return (f"{name}: geometric mean {mean('gain'):.3f} over {len(rows)} points, least "
            f"{min(row['gain'] for row in rows):.3f}, attainable {mean('attainable'):.3f}{general}")


def summary(rows):
    """Lines: gain and attainable of each operator and of all, and every point where a peer is faster."""
    operators = collections.defaultdict(list)
    for row in rows:
        operators[row["name"].partition(" ")[0]].append(row)
    lines = [_means(name, all_) for name, all_ in (*operators.items(), ("all", rows))]
    lines += [f"below 1.0: {row['name']}: {row['gain']:.3f} ({row['real_time']:.2f} us, {row['peer']} "
              f"{row['peer_us']:.2f} us, floor {row['floor_us']:.2f} us)"
              for row in sorted(rows, key=lambda row: row["gain"]) if row["gain"] < 1]
    return "\n".join(lines)


def version(package):
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} absent"


def write(path, rows, commit, packages):
    versions = [version(package) for package in ("torch", "triton", *packages)]
    context = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
               "device": torch.cuda.get_device_name(), "driver": f"CUDA {torch.version.cuda}",
               "assembler": ", ".join(versions), "commit": commit}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"context": context, "benchmarks": rows}, file, indent=1)
        file.write("\n")


def prepare(workers, seconds):
    """Compiles in processes of their own, which leave the code in the caches on disk that this one reads."""
    deadline = time.monotonic() + seconds
    command = [sys.executable, *sys.argv, "--compile-only"]
    running = [subprocess.Popen([*command, f"{worker}/{workers}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for worker in range(workers)]
    for each in running:
        try:
            each.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            each.kill()
            each.wait()


def compile_part(cases, part):
    """One worker's cases: those that differ in the number of rows alone share kernels, and a worker."""
    worker, workers = (int(each) for each in part.split("/"))
    groups = {}
    for case in cases:
        group = groups.setdefault((case.operator, re.sub(r"\b(T|TOKENS|S)=\d+", "", case.problem)), len(groups))
        if group % workers == worker:
            torch._dynamo.reset()
            try:
                list(right_ways(case, case.make()))
            except (AssertionError, RuntimeError, ValueError) as error:  # the process that measures says it
                print(f"{case.operator} {case.problem}: {error}", file=sys.stderr)


def chosen(cases, arguments):
    """The cases and ways that the command line names."""
    for case in cases([int(each) for each in arguments.tokens.split(",")]):
        if arguments.only and case.operator not in arguments.only.split(","):
            continue
        if arguments.ways:
            wanted = arguments.ways.split(",")
            case.ways = {way: run for way, run in case.ways.items() if way == OURS or way in wanted}
        yield case


def main(doc, cases, packages=()):
    """The command line of a family: `cases(tokens)` yields them; `packages` are those that peers come from."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--json", help="write Google Benchmark's format there")
    parser.add_argument("--only", help="operators, separated by commas")
    parser.add_argument("--tokens", default="1,4,16,64,256,1024,4096,16384", help="numbers of rows to measure")
    parser.add_argument("--ways", help="peers to measure, separated by commas (default: all)")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further problem after so long")
    parser.add_argument("--workers", type=int, default=0, help="compile in so many processes first")
    parser.add_argument("--compile-seconds", type=float, default=1e9, help="and go on after so long")
    parser.add_argument("--compile-only", help=argparse.SUPPRESS)
    parser.add_argument("--commit", default="unknown", help="named in the JSON as what was measured")
    arguments = parser.parse_args()
    torch._inductor.config.autotune_local_cache = False  # it would keep what was measured beside other processes
    torch._inductor.config.compile_threads = 1  # the processes are enough
    begin, rows, failed = time.monotonic(), [], False
    if arguments.workers and not arguments.compile_only:
        prepare(arguments.workers, arguments.compile_seconds)
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        if arguments.compile_only:
            return compile_part(chosen(cases, arguments), arguments.compile_only)
        flush = torch.empty(ROTATING_BYTES, device="cuda", dtype=torch.uint8)
        for case in chosen(cases, arguments):
            start = time.monotonic()
            if start - begin > arguments.seconds:
                print(f"out of time before {case.operator} {case.problem}", file=sys.stderr)
                break
            torch._dynamo.reset()  # a limit on how often one function is compiled
            try:
                rows.append(row_of(case, *times_of(case, stream, flush)))
            except (AssertionError, RuntimeError, ValueError) as error:
                failed = True
                print(f"FAILED: {case.operator} {case.problem}: {error}", file=sys.stderr)
                continue
            ways = ", ".join(f"{key[:-3]} {value:.2f}" for key, value in rows[-1].items()
                             if key.endswith("_us") and key != "peer_us")
            print(f"{rows[-1]['name']}: {rows[-1]['real_time']:.2f} us, gain {rows[-1]['gain']:.3f} ({ways}), measured in "
                  f"{time.monotonic() - start:.1f} s", flush=True)
            if arguments.json:
                write(arguments.json, rows, arguments.commit, packages)
    print(summary(rows) if rows else "nothing was measured")
    sys.exit(0 if rows and not failed else 1)

# SPDX-License-Identifier: Apache-2.0
"""How the scripts of this folder time an operator beside its peers: one process, one stream, graph replay, cold tensors.

Every way is captured into a graph of launches on rotating tensors, more than four times the L2 cache in all, and
replayed behind a flushed cache, as `tilewright bench` does. The ways take turns; figures are medians. A way may be
a list of variants (Triton's warps and blocks): the fastest in short rounds is the one that counts.
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

OURS = "tilewright"
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
    what they return instead of writing the outputs is kept while the graph lives, so that it rotates, too.
    """

    def __init__(self, operator, problem, make, outputs, function=None, tolerance=2e-2, bytes_=0):
        self.operator, self.problem, self.make = operator, problem, make
        self.outputs, self.function, self.tolerance = outputs, function, tolerance
        self.bytes = bytes_  # that a run touches, where they are not all those of its tensors
        self.unchecked = set()  # ways that do the same work on other numbers
        self.ways = {}
        if function:
            compiled = torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False, fullgraph=True)
            self.ways = {"torch": lambda *tensors: function(*tensors[:-outputs]),
                         "compile": lambda *tensors: compiled(*tensors[:-outputs])}

    def results(self, run, tensors):
        """What a way computes, on tensors of its own: some change in place."""
        tensors = [each.clone() for each in tensors]
        returned = run(*tensors)
        if isinstance(returned, torch.Tensor):
            return [returned]
        return list(returned)[:self.outputs] if isinstance(returned, (list, tuple)) else tensors[-self.outputs:]

    def expected(self, tensors):
        reference = self.function and (lambda *each: self.function(*each[:-self.outputs]))
        return self.results(reference or self.ways[OURS], tensors)

    def check(self, way, found, expected):
        """Throws where a way's outputs, of whatever type, are not what is expected."""
        for i, (mine, wanted) in enumerate(zip(found, expected, strict=True)):
            torch.testing.assert_close(
                mine.float(), wanted.float().view(mine.shape), rtol=self.tolerance, atol=self.tolerance,
                msg=lambda text, i=i: f"{self.operator} {self.problem}: {way}, output {i}: {text}")


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


def _rotating(case):
    """Tensors of as many runs as it takes to pass the cache, and how many launches make a replay."""
    copies = [case.make(), case.make()]
    size = case.bytes or sum(each.numel() * each.element_size() for each, other in zip(*copies)
                             if each.data_ptr() != other.data_ptr())  # others are the same in all runs
    while len(copies) * size < ROTATING_BYTES and len(copies) < MOST_COPIES:
        copies.append(case.make())
    us_at_least = size / 4.8e6  # at the memory's own rate
    return copies, max(len(copies), 4, min(MOST_COPIES, math.ceil(REPLAY_US / max(us_at_least, 1.5))))


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
    """Median µs of each way."""
    copies, launches = _rotating(case)
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
    return dict(zip(ways, _median_us(replays, ROUNDS, flush)))


def row_of(case, times):
    """A row in Google Benchmark's format: our time, each peer's, the best peer and what we gain over it."""
    peers = {way: us for way, us in times.items() if way != OURS}
    if not peers:
        raise ValueError("no peer is left to compare with")
    best = min(peers, key=peers.get)
    row = {"name": f"{case.operator} {case.problem}", "real_time": times[OURS], "time_unit": "us"}
    row.update({f"{way}_us": us for way, us in peers.items()})
    return {**row, "peer": best, "peer_us": peers[best], "gain": peers[best] / times[OURS]}


def at_ends(first, others, tokens):
    """(shape, rows): the first shapes at all numbers of rows, the others at the fewest and the most."""
    yield from ((shape, t) for shape in first for t in tokens)
    yield from ((shape, t) for shape in others for t in sorted({tokens[0], tokens[-1]}))


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(each) for each in values))


def summary(rows):
    """Lines: the gain of each operator and of all, and every point where a peer is faster."""
    gains = collections.defaultdict(list)
    for row in rows:
        gains[row["name"].partition(" ")[0]].append(row["gain"])
    lines = [f"{operator}: geometric mean {geometric_mean(all_):.3f} over {len(all_)} points, least {min(all_):.3f}"
             for operator, all_ in gains.items()]
    lines.append(f"all: geometric mean {geometric_mean([row['gain'] for row in rows]):.3f} over {len(rows)} points")
    lines += [f"below 1.0: {row['name']}: {row['gain']:.3f} ({row['real_time']:.2f} us, {row['peer']} "
              f"{row['peer_us']:.2f} us)" for row in sorted(rows, key=lambda row: row["gain"]) if row["gain"] < 1]
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
                rows.append(row_of(case, times_of(case, stream, flush)))
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

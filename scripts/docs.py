#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Fills in README.md and docs/: tables of figures from bench/results/*.json, code from the examples.
"""usage: scripts/docs.py [--check] [--program BUILD/tilewright]

A table of measured figures stands between two markers in a Markdown file; the first says what it shows:

    <!-- results: FILE [filter REGEX] columns TITLE=FIELD[*SCALE]:FORMAT | ... -->
    <!-- end of results -->

FILE is a file of bench/results in Google Benchmark's JSON format, REGEX selects rows by name, FIELD is
a field or counter of a row ("name", "time_us", "bytes_per_second", ...), SCALE a number, FORMAT one of
Python's ("" or ".2f" or ".1%"). A row that lacks a field shows a dash. Below the table stands where it
was measured. What an operator gains over its peers, by a file that a script of bench/peers wrote, stands between

    <!-- gains: FILE[,FILE...][ by rows] -->
    <!-- end of gains -->

and code between

    <!-- code: FILE REGION -->
    <!-- end of code -->

and is what FILE has between the lines "// begin REGION" and "// end REGION". With --program,
docs/operators.md is written anew from what the program's operators say. --check changes nothing and
exits with 1 if a file is out of date.
"""
import json
import math
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = re.compile(
    r"(<!-- results: (?P<file>\S+)(?: filter (?P<filter>\S+))? columns (?P<columns>.*?) -->\n)"
    r".*?(<!-- end of results -->)", re.S)
GAINS = re.compile(r"(<!-- gains: (?P<files>\S+)(?P<by_rows> by rows)? -->\n).*?(<!-- end of gains -->)", re.S)
CODE = re.compile(
    r"(<!-- code: (?P<file>\S+) (?P<region>\S+) -->\n).*?(<!-- end of code -->)", re.S)


MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


def cell(row, column):
    """One cell: `column` is 'FIELD[*SCALE]:FORMAT'."""
    field, _, spec = column.partition(":")
    field, _, scale = field.partition("*")
    value = row.get(field.strip())
    if value is None:
        return "-"
    if scale:
        value = float(value) * float(scale)
    return format(value, spec)


def measured_on(context):
    keys = ("device", "driver", "assembler", "commit", "date")
    return ", ".join(f"{key} {context[key]}" for key in keys if context.get(key))


def table(match):
    path = ROOT / "bench" / "results" / match["file"]
    if not path.exists():
        return f"\nNot measured yet: `bench/results/{match['file']}` does not exist.\n\n"
    results = json.loads(path.read_text())
    pattern = re.compile(match["filter"] or "")
    rows = [row for row in results["benchmarks"]
            if pattern.search(row["name"]) and not row.get("error_occurred")]
    for row in rows:
        row["problem"] = row["name"].partition(" ")[2]
        row["time_us"] = row["real_time"] * MICROSECONDS[row["time_unit"]]
    if not rows:
        return "\nNot measured yet.\n\n"
    columns = [column.strip().split("=", 1) for column in match["columns"].split("|")]
    lines = ["| " + " | ".join(title for title, _ in columns) + " |",
             "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row, column) for _, column in columns) + " |" for row in rows]
    return "\n" + "\n".join(lines) + f"\n\nMeasured on: {measured_on(results['context'])}.\n\n"


def geometric_mean(rows, field):
    return math.exp(sum(math.log(row[field]) for row in rows) / len(rows))


def aimed_us(row):
    """The time that is aimed at: 0.2 us above a copy of as many bytes for one row, 0.4 up to 256, else 97 % of its rate."""
    size = re.search(r"\bT=(\d+)", row["name"])
    rows = int(size[1]) if size else math.inf
    return row["floor_us"] + (0.2 if rows == 1 else 0.4) if rows <= 256 else row["floor_us"] / 0.97


def gains(match):
    """One row an operator, or a number of rows, of files of bench/peers, and one of all: how much faster than the fastest
    peer of each point, and how much faster a copy of as many bytes would be."""
    rows, measured = [], []
    for file in match["files"].split(","):
        path = ROOT / "bench" / "results" / file
        if not path.exists():
            return f"\nNot measured yet: `bench/results/{file}` does not exist.\n\n"
        results = json.loads(path.read_text())
        rows += results["benchmarks"]
        measured.append(measured_on(results["context"]))
    if any("gain" not in row for row in rows):
        return "\nNot measured yet.\n\n"
    groups = {}
    for row in rows:
        operator, _, problem = row["name"].partition(" ")
        size = re.match(r"T=(\d+)", problem)
        groups.setdefault(int(size[1]) if match["by_rows"] and size else operator, []).append(row)
    if match["by_rows"]:
        groups = dict(sorted(groups.items(), key=lambda group: (isinstance(group[0], str), group[0])))
    aims = bool(match["by_rows"])
    for row in rows if aims else []:
        row["at_the_aim"] = row["peer_us"] / aimed_us(row)
    lines = [f"| {'rows' if match['by_rows'] else 'operator'} | points | geometric mean | of a copy's | "
             f"{'at the aims | ' if aims else ''}below 0.99 | least | at |", "|---" * (8 if aims else 7) + "|"]
    for group, rows_of in [*groups.items(), ("all", rows)]:
        least = min(rows_of, key=lambda row: row["gain"])
        attainable = geometric_mean(rows_of, "attainable") if all("attainable" in row for row in rows_of) else None
        aimed = geometric_mean(rows_of, "at_the_aim") if aims else None
        lines.append(f"| {group} | {len(rows_of)} | {geometric_mean(rows_of, 'gain'):.3f} | "
                     f"{f'{attainable:.3f}' if attainable else '—'} | {f'{aimed:.3f} | ' if aims else ''}"
                     f"{sum(row['gain'] < 0.99 for row in rows_of)} | "
                     f"{least['gain']:.2f} | {least['name']} ({least['peer']}) |")
    return "\n" + "\n".join(lines) + f"\n\nMeasured on: {'; '.join(dict.fromkeys(measured))}.\n\n"


def code(match):
    lines = (ROOT / match["file"]).read_text().splitlines()
    stripped = [line.strip() for line in lines]
    begin = stripped.index(f"// begin {match['region']}")
    end = stripped.index(f"// end {match['region']}")
    body = textwrap.dedent("\n".join(lines[begin + 1:end]))
    return f"```cpp\n{body}\n```\n"


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    if check:
        arguments.remove("--check")
    program = arguments.pop() if arguments[:1] == ["--program"] and len(arguments) == 2 else None
    if arguments not in ([], ["--program"]) or (arguments and program is None):
        sys.exit(__doc__)
    operators = ROOT / "docs" / "operators.md"
    stale = []
    for path in sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), operators}):
        old = path.read_text() if path.exists() else ""
        new = old
        if path == operators and program:
            new = subprocess.run([program, "list", "--markdown"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        new = RESULTS.sub(lambda match: match[1] + table(match) + match[5], new)
        new = GAINS.sub(lambda match: match[1] + gains(match) + match[4], new)
        new = CODE.sub(lambda match: match[1] + code(match) + match[4], new)
        if new == old:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            path.write_text(new)
    if check and stale:
        sys.exit("out of date: " + ", ".join(stale) + "; run scripts/docs.py" +
                 (" --program " + program if program else ""))
    print("written: " + ", ".join(stale) if stale else "up to date")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Regenerates the tables of measured figures in README.md and docs/ from bench/results/*.json.
"""usage: scripts/tables.py [--check]

A table stands between two markers in a Markdown file; the first says what it shows:

    <!-- results: FILE [filter REGEX] columns TITLE=FIELD[*SCALE]:FORMAT | ... -->
    <!-- end of results -->

FILE is a file of bench/results in Google Benchmark's JSON format, REGEX selects rows by name, FIELD is
a field or counter of a row ("name", "real_time", "bytes_per_second", ...), SCALE a number, FORMAT one of
Python's ("" or ".2f" or ".1%"). A row that lacks a field shows a dash. Below the table stands where it
was measured. --check changes nothing and exits with 1 if a file is out of date.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARKER = re.compile(
    r"(<!-- results: (?P<file>\S+)(?: filter (?P<filter>\S+))? columns (?P<columns>.*?) -->\n)"
    r".*?(<!-- end of results -->)", re.S)


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
    columns = [column.strip().split("=", 1) for column in match["columns"].split("|")]
    lines = ["| " + " | ".join(title for title, _ in columns) + " |",
             "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row, column) for _, column in columns) + " |" for row in rows]
    return "\n" + "\n".join(lines) + f"\n\nMeasured on: {measured_on(results['context'])}.\n\n"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    stale = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = path.read_text()
        new = MARKER.sub(lambda match: match[1] + table(match) + match[5], old)
        if new == old:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            path.write_text(new)
    if check and stale:
        sys.exit("out of date: " + ", ".join(stale) + "; run scripts/tables.py")
    print("written: " + ", ".join(stale) if stale else "tables are up to date")


if __name__ == "__main__":
    main()

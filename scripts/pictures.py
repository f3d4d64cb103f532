#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Draws docs/pictures/*.svg, and writes docs/lessons.md, from the comments of the examples.
"""usage: scripts/pictures.py [--check] [--program BUILD/tilewright]

Each lesson's diagram is the indented part of the comment in front of its kernel: characters there become
lines (- | / \\ + with corners . and '), arrow heads (> < v ^) and boxes ([...]); everything else is text.
Layouts (LAYOUTS below) are drawn by the program, if it is given. --check changes nothing and exits with 1
if a file is out of date.
"""
import html
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 9, 20  # of a character's cell
KERNELS = {"09_mma_gemm": "mma_gemm.h", "11_wgmma_gemm": "wgmma_gemm.h"}  # whose diagram is in a header

# Pictures of layouts: lesson, name, what it shows, expression, the program's options.
LAYOUTS = [
    ("06_transpose", "banks_plain", "banks of a tile of 16 x 32 f32, row by row: a column has one bank",
     "(16,32):(32,1)", ["--banks", "32"]),
    ("06_transpose", "banks_swizzled", "the same, swizzled: a column has every bank once",
     "Sw<5,0,5> o 0 o (16,32):(32,1)", ["--banks", "32"]),
    ("09_mma_gemm", "ldmatrix", "which lane gets which elements of a matrix that ldmatrix reads",
     "make_layout_tv((8,4):(4,1), (1,2):(2,1))", []),
    ("09_mma_gemm", "smem_tile",
     "banks of 8 rows of 64 bf16 in a stage: 16 bytes of each row, which ldmatrix reads at once, have all banks",
     "Sw<3,3,3> o 0 o (8,64):(64,1)", ["--banks", "16"]),
]


def diagram(path):
    """The lines of the first indented block of comments, without what they have in common."""
    block = []
    for line in path.read_text().splitlines():
        match = re.match(r"\s*//(   .*)?$", line)
        if match and (match[1] or block):
            block.append(match[1] or "")
        elif sum(1 for text in block if text) >= 2:
            break
        else:
            block = []
    while block and not block[-1]:
        block.pop()
    indent = min((len(t) - len(t.lstrip()) for t in block if t), default=0)
    return [text[indent:] for text in block]


class Grid:
    def __init__(self, lines):
        self.lines = lines
        self.width = max(len(line) for line in lines)

    def at(self, x, y):
        inside = 0 <= y < len(self.lines) and 0 <= x < len(self.lines[y])
        return self.lines[y][x] if inside else " "

    def is_across(self, x, y):
        """A '-' that belongs to a line: no hyphen, no minus."""
        return self.at(x, y) == "-" and (self.at(x - 1, y) in "-+.'<" or self.at(x + 1, y) in "-+.'>")

    def is_down(self, x, y):
        near = self.at(x, y - 1) + self.at(x, y + 1)
        return self.at(x, y) == "|" and (any(c in "|+.'v^/\\" for c in near) or self.at(x - 1, y) + self.at(x + 1, y) == "  ")

    def is_slanted(self, x, y):
        near = [self.at(x + d, y) for d in (-2, -1, 1, 2)]  # a division stands between words
        return self.at(x, y) in "/\\" and not any(c.isalnum() or c == "]" for c in near)

    def joins(self, x, y):
        """The directions that a corner or crossing has lines to."""
        if self.at(x, y) not in "+.'":
            return []
        ways = [(-1, 0, self.is_across(x - 1, y)), (1, 0, self.is_across(x + 1, y)),
                (0, -1, self.at(x, y - 1) in "|+v" and self.at(x, y) != "."), (0, 1, self.at(x, y + 1) in "|+v" and self.at(x, y) != "'")]
        found = [(dx, dy) for dx, dy, there in ways if there]
        return found if any(dx for dx, _ in found) else []

    def head(self, x, y):
        """The direction of an arrow head."""
        c = self.at(x, y)
        if c == ">" and self.at(x - 1, y) == "-":
            return 1, 0
        if c == "<" and self.at(x + 1, y) == "-":
            return -1, 0
        alone = not (self.at(x - 1, y).isalnum() or self.at(x + 1, y).isalnum())
        if c == "v" and alone and self.at(x, y - 1) in "|+":
            return 0, 1
        return None


def line(x0, y0, x1, y1):
    return f'<line x1="{x0:g}" y1="{y0:g}" x2="{x1:g}" y2="{y1:g}"/>'


def cell_shapes(grid, x, y):
    """SVG of the character at (x, y); nothing for text."""
    cx, cy = (x + 0.5) * WIDTH, (y + 0.5) * HEIGHT
    w, h = WIDTH / 2, HEIGHT / 2
    if grid.is_across(x, y):
        return [line(cx - w, cy, cx + w, cy)]
    if grid.is_down(x, y):
        return [line(cx, cy - h, cx, cy + h)]
    if grid.is_slanted(x, y):
        s = 1 if grid.at(x, y) == "\\" else -1
        return [line(cx - w * s, cy - h, cx + w * s, cy + h)]
    if grid.joins(x, y):
        return [line(cx, cy, cx + dx * w, cy + dy * h) for dx, dy in grid.joins(x, y)]
    head = grid.head(x, y)
    if head:
        dx, dy = head
        tip = (cx + dx * w, cy + dy * h)
        wings = [(cx - dx * w + dy * 4, cy - dy * w + dx * 4), (cx - dx * w - dy * 4, cy - dy * w - dx * 4)]
        points = " ".join(f"{px:g},{py:g}" for px, py in [tip, *wings])
        return [line(cx - dx * w, cy - dy * h, cx, cy), f'<polygon points="{points}"/>']
    return []


def boxes(grid):
    """Rectangles for [...], and the brackets' places."""
    shapes, taken = [], set()
    for y, text in enumerate(grid.lines):
        for match in re.finditer(r"\[[^\[\]]*[^\[\]\d ][^\[\]]*\]", text):
            if match.start() > 0 and text[match.start() - 1].isalnum():
                continue  # an index
            shapes.append(f'<rect x="{(match.start() + 0.5) * WIDTH:g}" y="{y * HEIGHT + 1:g}" '
                          f'width="{(len(match[0]) - 1) * WIDTH:g}" height="{HEIGHT - 2}" rx="3"/>')
            taken |= {(match.start(), y), (match.end() - 1, y)}
    return shapes, taken


def draw(lines):
    grid = Grid(lines)
    shapes, taken = boxes(grid)
    texts = []
    for y, text in enumerate(lines):
        words = ""
        for x, c in enumerate(text):
            drawn = [] if (x, y) in taken else cell_shapes(grid, x, y)
            shapes += drawn
            words += " " if drawn or (x, y) in taken else c
        for match in re.finditer(r"\S+(?: \S+)*", words):
            length = len(match[0]) * WIDTH
            texts.append(f'<text x="{match.start() * WIDTH:g}" y="{(y + 0.72) * HEIGHT:g}" textLength="{length}">'
                         f"{html.escape(match[0], quote=False)}</text>")
    size = (grid.width * WIDTH + 2 * WIDTH, len(lines) * HEIGHT + HEIGHT)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
            f'viewBox="{-WIDTH} {-HEIGHT // 2} {size[0]} {size[1]}" font-family="monospace" font-size="15">\n'
            f'<rect x="{-WIDTH}" y="{-HEIGHT // 2}" width="100%" height="100%" fill="#fff"/>\n'
            '<g stroke="#246" stroke-width="1.5" fill="#e6eef8" stroke-linecap="round">\n' + "\n".join(shapes) +
            '\n</g>\n<g fill="#111">\n' + "\n".join(texts) + "\n</g>\n</svg>\n")


def lessons():
    """(stem, title) of every example: the first sentence of its comment."""
    for path in sorted((ROOT / "examples").glob("[0-9][0-9]_*.cpp")):
        comment = re.match(r"// SPDX.*\n((?://.*\n)+)", path.read_text())[1]
        text = re.sub(r"\n// ", " ", comment.split("\n//\n")[0])
        yield path.stem, text.removeprefix("// ").strip()


def page():
    out = ["# Lessons", "",
           "The [examples](../examples) in the order to read them. Each takes a device (`emu:sm_90a`, `cuda:0`) and checks its own result. "
           "`scripts/pictures.py` draws the pictures from the comments of the code, and layouts with `tilewright layout --svg`.", ""]
    for stem, title in lessons():
        number, _, words = title.partition(": ")
        out += [f"## {number.removeprefix('Lesson ')}. {stem[3:].replace('_', ' ').capitalize()}", "",
                f"{words[0].upper()}{words[1:]} [{stem}.cpp](../examples/{stem}.cpp)", ""]
        if (PICTURES / f"{stem}.svg").exists() or diagram(source(stem)):
            out += [f"![The diagram of lesson {int(stem[:2])}](pictures/{stem}.svg)", ""]
        for lesson, name, shows, expression, _ in LAYOUTS:
            if lesson == stem:
                out += [f"`{expression}`: {shows}.", "", f"![{shows}](pictures/{stem}_{name}.svg)", ""]
    return "\n".join(out).rstrip("\n") + "\n"


def source(stem):
    return ROOT / "examples" / KERNELS.get(stem, f"{stem}.cpp")


def pictures(program):
    """File to text, of all that this script writes."""
    files = {}
    for stem, _ in lessons():
        lines = diagram(source(stem))
        if lines:
            files[PICTURES / f"{stem}.svg"] = draw(lines)
    files[ROOT / "docs" / "lessons.md"] = page()
    if program:
        scratch = pathlib.Path(tempfile.mkdtemp()) / "layout.svg"
        for stem, name, _, expression, options in LAYOUTS:
            subprocess.run([program, "layout", expression, "--svg", str(scratch), *options], check=True,
                           stdout=subprocess.DEVNULL)
            files[PICTURES / f"{stem}_{name}.svg"] = scratch.read_text()
        shutil.rmtree(scratch.parent)
    return files


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    program = arguments[arguments.index("--program") + 1] if "--program" in arguments else None
    PICTURES.mkdir(exist_ok=True)
    stale = []
    for path, text in pictures(program).items():
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.relative_to(ROOT))
        if not check:
            path.write_text(text)
    for path in stale:
        print(f"{path}: " + ("out of date; run scripts/pictures.py --program BUILD/tilewright" if check else "written"))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

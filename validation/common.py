"""What the scripts of this folder share: running programs, tables, and the work of docs/wall.md."""

import bisect
import csv
import itertools
import json
import math
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FLOATGATE = Path(__file__).parent.parent / "target/release/floatgate"
PAGES = 64  # of a block
DATA_BLOCKS = 1600  # that hold data in steady state; a simulator's reserve of erased blocks comes on top
PAGE_BYTES = 4096
GAP_US = 400_000  # between two requests: all that a write causes has ended when the next one comes


class Refused(Exception):
    """Something outside these scripts is not as it must be."""


# --- Programs and tables ----------------------------------------------------------------------------------------


def run(command, good=0, **how):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", **how)
    except FileNotFoundError as missing:
        raise Refused(f"{missing.filename}: not there; build it first") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"{command[0]}: no end after {how['timeout']} s") from None
    if done.returncode != good:
        raise Refused(f"{command[0]} ended with {done.returncode}:\n{(done.stderr or done.stdout)[-2000:]}")
    return done


LONGEST_S = 300  # of processor time; some simulators do not end on work that they cannot do
# A process begins with the peak memory of the one that it was forked from, so a small one has to do the forking.
LAUNCHER = """import json, os, resource, sys
limit, report, *command = sys.argv[1:]
child = os.fork()
if not child:
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
    os.execv(command[0], command)
_, status, used = os.wait4(child, 0)
with open(report, "w") as out:
    json.dump([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024], out)
"""


def measured_run(command, folder, good=0, typed="", **how):
    """Output, seconds of processor time, and the largest resident memory in MiB, of a program in `folder`."""
    name, found = Path(command[0]).name, shutil.which(command[0])
    if not found:
        raise Refused(f"{command[0]}: not there, or not a program; build it first")
    words = [sys.executable, "-S", "-c", LAUNCHER, LONGEST_S, "usage", found, *command[1:]]
    done = subprocess.run(
        list(map(str, words)), cwd=folder, input=typed, capture_output=True, text=True, errors="replace", **how
    )
    code, seconds, mib = json.loads((folder / "usage").read_text())
    if code in (-signal.SIGKILL, -signal.SIGXCPU):
        raise Refused(f"{name}: no end after {LONGEST_S} s of processor time")
    if code != good:
        said = (done.stderr or done.stdout).strip()
        brief = said if len(said) < 200 else f"{said[:80]} ... {said[-80:]}"
        raise Refused(f"{name} ended with {code}: {brief}")
    return done.stdout, seconds, mib


def aligned(rows, styles=None):
    """An aligned table: text to the left, numbers to the right, "-" for what there is not."""

    def cell(value, column):
        if value is None:
            return "-"
        if styles and column in styles:
            return styles[column](value)
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    columns = list(rows[0])
    cells = [columns] + [[cell(row[c], c) for c in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    left = [any(isinstance(row[c], str) for row in rows) for c in columns]
    padded = [
        [text.ljust(width) if to_left else text.rjust(width) for text, width, to_left in zip(line, widths, left)]
        for line in cells
    ]
    return "\n".join("  ".join(line).rstrip() for line in padded)


def program(text):
    """An argument that names a program or a folder; absolute, because programs run in folders of their own."""
    path = Path(text).resolve()
    if not path.exists():
        raise Refused(f"{text}: not there; see the head of this script")
    return path


# --- Closed formulas (docs/spec/analytic.md) ----------------------------------------------------------------------


def lambert_w0(x):
    w = -1 + math.sqrt(max(0, 2 * (1 + math.e * x))) if x < -0.25 else x
    for _ in range(100):
        e = math.exp(w)
        slope = e * (w + 1) - (w + 2) * (w * e - x) / (2 * w + 2)
        step = (w * e - x) / slope if slope else 0
        w -= step
        if abs(step) < 1e-14:
            break
    return w


def fifo(a):
    """`a`: pages that can hold data, over logical pages."""
    return a / (a + lambert_w0(-a * math.exp(-a)))


def greedy(a, pages=PAGES):
    k = 1 + 1 / (2 * pages)
    return fifo(k * a) / k


# --- The work: single-page writes ---------------------------------------------------------------------------------


class Work:
    """Every page once in order, then `warm` writes that only age the device, then `count` that are measured."""

    def __init__(self, name, logical, data_blocks, pattern, warm, count, writes, skew=0.0):
        self.name, self.logical, self.data_blocks = name, logical, data_blocks
        self.pattern, self.skew, self.warm, self.count, self.writes = pattern, skew, warm, count, writes
        self.spare = 1 - logical / (data_blocks * PAGES)

    def shortened(self, by):
        """Less of it, for the slow; what is recorded stays whole."""
        parts = 1 if self.pattern == "recorded" else by
        warm, count = self.warm // parts, self.count // parts
        return Work(self.name, self.logical, self.data_blocks, self.pattern, warm, count, self.writes, self.skew)

    def pages(self, measured):
        """Page numbers, with or without the measured part."""
        return itertools.chain(range(self.logical), self.writes[: self.warm + (self.count if measured else 0)])


def zipf(draw, logical, theta, count):
    weights = list(itertools.accumulate((rank + 1) ** -theta for rank in range(logical)))
    places = list(range(logical))
    draw.shuffle(places)
    total = weights[-1]
    return [places[bisect.bisect_left(weights, draw.random() * total)] for _ in range(count)]


def hot_cold(draw, logical, share, count):
    """`share` of the writes go to 1 - `share` of the pages, which lie together."""
    hot = round(logical * (1 - share))
    return [draw.randrange(hot) if draw.random() < share else draw.randrange(hot, logical) for _ in range(count)]


def made_up(name, spare, pattern, skew=0.0, warm=500_000, count=500_000):
    logical, draw = round(DATA_BLOCKS * (1 - spare)) * PAGES, random.Random(1)
    kinds = {
        "uniform": lambda: [draw.randrange(logical) for _ in range(warm + count)],
        "zipf": lambda: zipf(draw, logical, skew, warm + count),
        "hot-cold": lambda: hot_cold(draw, logical, skew, warm + count),
    }
    return Work(name, logical, DATA_BLOCKS, pattern, warm, count, kinds[pattern](), skew)


def recorded(floatgate, name, spare):
    """The page writes of a bundled trace, its pages numbered as they come; the first pass ages the device."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.csv"
        run([floatgate, "trace", "convert", name, file])
        numbers, writes = {}, []
        with open(file) as lines:
            for row in csv.DictReader(lines):
                if row["op"] == "W":
                    first, end = int(row["offset"]), int(row["offset"]) + int(row["size"])
                    for page in range(first // PAGE_BYTES, -(-end // PAGE_BYTES)):
                        writes.append(numbers.setdefault(page, len(numbers)))
    logical = -(-len(numbers) // PAGES) * PAGES
    data_blocks = round(logical / PAGES / (1 - spare))
    return Work(name, logical, data_blocks, "recorded", len(writes), len(writes), writes * 2)


def works(floatgate, only=None):
    makers = {
        "uniform, spare .05": lambda name: made_up(name, 0.05, "uniform"),
        "uniform, spare .07": lambda name: made_up(name, 0.07, "uniform"),
        "uniform, spare .10": lambda name: made_up(name, 0.10, "uniform"),
        "uniform, spare .20": lambda name: made_up(name, 0.20, "uniform"),
        "zipf 0.8, spare .10": lambda name: made_up(name, 0.10, "zipf", 0.8),
        "zipf 1.0, spare .10": lambda name: made_up(name, 0.10, "zipf", 1.0),
        "80/20, spare .10": lambda name: made_up(name, 0.10, "hot-cold", 0.8),
        "oltp-postgres": lambda name: recorded(floatgate, name, 0.10),
    }
    chosen = {name: maker for name, maker in makers.items() if not only or only in name}
    if not chosen:
        raise Refused(f"--only {only}: no such work; there are {', '.join(makers)}")
    for name, maker in chosen.items():
        yield maker(name)


# --- The wall -----------------------------------------------------------------------------------------------------


def twice(play):
    """Counters of the measured part: those of a run with it less those of a run without; seconds and MiB are the
    longer run's. `play(measured)` gives all three."""
    before, _, _ = play(False)
    after, seconds, mib = play(True)
    return {key: after[key] - before[key] for key in after}, seconds, mib


def row(work, peer, moved, writes, response_us, seconds, mib, played=None):
    """A row of the wall. `moved`: pages written beyond the host's; `seconds`: of `played` writes, or of all."""
    return {
        "work": work.name,
        "simulator": peer,
        "writes": writes,
        "WA": 1 + moved / writes,
        "response us": response_us,
        "writes/s": round((played or work.logical + work.warm + work.count) / seconds),
        "MiB": round(mib),
    }


def wall(parser, make):
    """The main function of a peer: `make(given)` gives the function that plays one work in a folder."""
    parser.add_argument("--floatgate", type=Path, default=FLOATGATE)
    parser.add_argument("--only", metavar="TEXT", help="only works with this in their names")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows, refused = [], []
    try:
        play = make(given)
        for work in works(given.floatgate.resolve(), given.only):
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                try:
                    rows += play(work, Path(folder))
                except Refused as why:
                    refused.append({"work": work.name, "refused": " ".join(str(why).split())})
            print(f"{work.name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    except Refused as why:
        print(why, file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps({"rows": rows, "refused": refused}, indent=1))
    else:
        print("\n\n".join(aligned(table) for table in (rows, refused) if table))
    return 0

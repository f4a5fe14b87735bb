#!/usr/bin/env python3
"""Runs SSDsim and Floatgate on the same work with the same chip and prints their mean responses side by side.

docs/validation.md explains the differences. SSDsim is not part of Floatgate, and is neither fetched nor built here: FOLDER
has its program `ssd` and its file `page.parameters` (huaicheng/ssdsim, commit f411289), and stays as it is.

    cargo build --release --bin floatgate
    python3 validation/ssdsim.py FOLDER [--our-order PROGRAM]

PROGRAM is another one, changed as docs/validation.md says; without it there is no column of that name.
"""

import argparse
import csv
import json
import random
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from common import FLOATGATE, Refused, aligned, measured_run, run

CHANNELS, PACKAGES, BLOCKS, PAGES = 4, 4, 2048, 64
PAGE_BYTES, SECTORS = 2048, 4
T_PROG = 200_000
# SSDsim's sub-pages are 512 bytes long; 16 spare bytes more and its transfers are ours.
COUNTED_ALIKE = dict(subpage__capacity=528)
MS, SECOND = 10**6, 10**9
SHARES = dict.fromkeys(["equal", "our order"], lambda share: f"{100 * share:.1f} %")
SPACE = 32768  # logical pages of the made-up work
# Every trace ends long before this. SSDsim's clock stands still at the end of the file, and a run with work left never
# ends. A last line without a line feed it reads, moves the clock up to, and drops.
LATE = 10**15


# --- The work: (arrival in ns, "R" or "W", first page, pages) ---------------------------------------------------


def idle(op, pages):
    """One request at a time, far apart, on all dies in turn."""
    return [(i * 20 * MS, op, i * 64 % SPACE + i % 7, pages) for i in range(500)]


def poisson(seed, requests, a_second, reads, longest=1):
    """Random pages at random times; no two at the same one."""
    draw, at, work = random.Random(seed), 0, []
    for _ in range(requests):
        at += 1 + int(draw.expovariate(a_second) * SECOND)
        op = "R" if draw.random() < reads else "W"
        pages = draw.randint(1, longest)
        work.append((at, op, draw.randrange(SPACE - longest), pages))
    return work


def bundled(floatgate, name, folder):
    """Reads and writes of a bundled trace, rounded to whole pages; flushes and trims are left out."""
    file = folder / f"{name}.csv"
    run([floatgate, "trace", "convert", name, file])
    with open(file) as lines:
        for row in csv.DictReader(lines):
            if row["op"] in "RW":
                offset, size = int(row["offset"]), int(row["size"])
                first = offset // PAGE_BYTES
                pages = -(-(offset + size) // PAGE_BYTES) - first
                yield int(row["time_ns"]), row["op"], first, pages


# --- The two simulators -----------------------------------------------------------------------------------------


def trace_lines(work):
    return "".join(
        f"{at} 0 {first * SECTORS} {pages * SECTORS} {int(op == 'R')}\n" for at, op, first, pages in work
    )


class Ssdsim:
    def __init__(self, built, folder, program=None):
        self.folder, self.parameters = folder, Path(built) / "page.parameters"
        self.program = Path(program or Path(built) / "ssd").resolve()
        for file in (self.program, self.parameters):
            if not file.exists():
                raise Refused(f"{file}: not there; see the head of this script")
        folder.mkdir()

    def run(self, work, **settings):
        """Responses by request, and the counters that it prints."""
        packages = settings.pop("packages", PACKAGES)
        change = {
            "dram capacity": 0,
            "channel number": CHANNELS,
            "chip number": CHANNELS * packages,
            "die number": 1,
            "plane number": 1,
            "block number": BLOCKS,
            "allocation": 1,
            "static_allocation": 1,
            "advanced command": 0,
            "gc threshold": 0.01,
            "gc hard threshold": 0.01,
        }
        change |= {key.replace("__", " "): value for key, value in settings.items()}
        lines = ["queue_length=1000000;"]  # not in its file; otherwise 5
        for line in self.parameters.read_text(encoding="latin-1").splitlines():
            key = line.split("=")[0].strip()
            if channel := re.match(r"chip number\[(\d+)\]", key):
                line = f"{key} = {packages if int(channel[1]) < CHANNELS else 0};"
            elif key in change:
                line = f"{key} = {change[key]};"
            lines.append(line)
        (self.folder / "page.parameters").write_text("\n".join(lines) + "\n", encoding="latin-1")
        # It divides by the number of reads and of writes: one more of each, when all else is done.
        more = [(LATE, "R", 0, 1), (LATE + SECOND, "W", 0, 1), (LATE + 2 * SECOND, "W", 0, 1)]
        (self.folder / "work").write_text(trace_lines([*work, *more]).rstrip())
        # It ends with 1 when all went well.
        _, self.seconds, self.mib = measured_run([self.program], self.folder, good=1, typed="work\n")
        return self.read((self.folder / "ex.out").read_text(encoding="latin-1"), work)

    def read(self, text, work):
        responses = defaultdict(list)
        body = text[text.index("begin time") :].splitlines()[1:]
        for line in body[: len(work)]:
            cells = line.split()
            if len(cells) != 7:
                raise Refused(f"SSDsim finished fewer requests than the {len(work)} of the work: {line}")
            at, sector, sectors, read, _, _, response = map(int, cells)
            responses[at, "WR"[read], sector // SECTORS, sectors // SECTORS].append(response)
        counters = dict(re.findall(r"^([a-z][\w -]+): +(\d+)", text, re.M))
        if "erase count" not in counters:
            raise Refused("SSDsim ended without its counters")
        # What was put there before the run, for the reads to find, is counted with the programs.
        placed = 1 + sum(pages for _, op, _, pages in work if op == "R")
        return responses, {
            "reads": int(counters["read count"]) - 1,
            "programs": int(counters["program count"]) - placed - 1,
            "erases": int(counters["erase count"]),
            "pairs": int(counters["multi-plane program count"]) + int(counters["interleave two plane count"]),
            "interleaved": int(counters["interleave write count"]),
        }


class Floatgate:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary.resolve(), folder

    def run(self, work, logical=SPACE, blocks=BLOCKS, **settings):
        trace, rows = self.folder / "work.5ns", self.folder / "rows.csv"
        trace.write_text(trace_lines(work))
        device = {
            "device.part": "ssdsim",
            "device.planes": 1,
            "device.channels": CHANNELS,
            "device.dies": CHANNELS * PACKAGES,
            "device.logical_pages": logical,
            "device.blocks_per_die": blocks,
            "host.beyond": "error",
        }
        device |= {key.replace("__", "."): value for key, value in settings.items()}
        sets = [word for key, value in device.items() for word in ("--set", f"{key}={value}")]
        done = run(
            [self.binary, "run", "--scheme", "page", "--trace", trace, "--json", "--requests-out", rows, *sets]
        )
        responses = defaultdict(list)
        first_at = work[0][0]  # its times count from the first request
        with open(rows) as lines:
            for row, request in zip(csv.DictReader(lines), work, strict=True):
                if int(row["arrival_ns"]) != request[0] - first_at:
                    raise Refused(f"request {row['request']} of Floatgate is not the one of the work")
                responses[request].append(int(row["end_ns"]) - int(row["arrival_ns"]))
        flash = json.loads(done.stdout)["results"][0]["counters"]["flash"]
        return responses, flash


# --- The comparison ---------------------------------------------------------------------------------------------


def mean(responses, op, less=0):
    values = [value - less for request, found in responses.items() if request[1] == op for value in found]
    return sum(values) / len(values) / 1000 if values else None


def equal(ours, theirs, op):
    """Share of the requests whose responses are equal to the ns once a program is not waited for in ours."""
    same = total = 0
    for request, found in ours.items():
        if request[1] == op:
            less = T_PROG if op == "W" else 0
            same += sum(a - less == b for a, b in zip(sorted(found), sorted(theirs[request]), strict=True))
            total += len(found)
    return same / total if total else None


def compare(name, work, there, floatgate, **ours_settings):
    """A row for the reads and one for the writes: both as they are, then both counting alike."""
    (theirs, counts), (aligned, _) = there["as it is"].run(work), there["as it is"].run(work, **COUNTED_ALIKE)
    in_order = there.get("our order")
    ordered = in_order and in_order.run(work, **COUNTED_ALIKE)[0]
    ours, flash = floatgate.run(work, **ours_settings)
    for op, what in (("R", "reads"), ("W", "programs")):
        if mean(ours, op) is not None:
            yield {
                "work": name,
                "op": op,
                "requests": sum(request[1] == op for request in work),
                "pages S": counts[what],
                "pages F": sum(flash[what].values()),
                "us S": mean(theirs, op),
                "us F": mean(ours, op),
                "alike S": mean(aligned, op),
                "alike F": mean(ours, op, T_PROG if op == "W" else 0),
                "equal": equal(ours, aligned, op),
                "our order": ordered and equal(ours, ordered, op),
            }


def collection(there, floatgate):
    """Collection: a device filled in order, then pages overwritten at random, slowly; threshold and reserve alike."""
    logical, draw = 16 * 48 * PAGES, random.Random(9)
    pages = [*range(logical), *(draw.randrange(logical) for _ in range(100_000))]
    work = [(i * 2 * MS, "W", page, 1) for i, page in enumerate(pages)]
    _, counts = there["as it is"].run(work, block__number=64, gc__hard__threshold=0.083)
    _, flash = floatgate.run(
        work, logical=logical, blocks=64, scheme__streams="shared", scheme__gc_low=6, run__start="empty"
    )
    programs = {"SSDsim": counts["programs"], "Floatgate": sum(flash["programs"].values())}
    erases = {"SSDsim": counts["erases"], "Floatgate": sum(flash["erases"].values())}
    for name in programs:
        yield {
            "collection": name,
            "programs": programs[name],
            "erases": erases[name],
            "programs a write": (programs[name] - logical) / 100_000,
        }


def side_by_side(there, floatgate, folder):
    works = [
        ("1 page, alone", idle("R", 1)),
        ("1 page, alone", idle("W", 1)),
        ("16 pages, alone", idle("R", 16)),
        ("16 pages, alone", idle("W", 16)),
        ("64 pages, alone", idle("R", 64)),
        ("64 pages, alone", idle("W", 64)),
        ("random, 30,000 a second", poisson(1, 20_000, 30_000, 1)),
        ("random, 60,000 a second", poisson(2, 20_000, 60_000, 1)),
        ("random, 25,000 a second", poisson(3, 20_000, 25_000, 0)),
        ("random, 50,000 a second", poisson(4, 20_000, 50_000, 0)),
        ("mixed, 12,000 a second", poisson(5, 20_000, 12_000, 0.7)),
        ("mixed, 1 to 8 pages", mixed()),
    ]
    for name, work in works:
        yield from compare(name, work, there, floatgate)
    trace = list(bundled(floatgate.binary, "ext4-iozone", folder))
    yield from compare("ext4-iozone", trace, there, floatgate, logical=2**19)


def mixed():
    return poisson(6, 20_000, 6_000, 0.7, longest=8)


def what_it_has(there):
    """SSDsim's own switches, each on the same three works."""
    one = dict(packages=1, die__number=4, plane__number=4, block__number=512)
    variants = [
        ("4 packages of 1 die of 1 plane", {}),
        ("  dynamic allocation", dict(allocation=0)),
        ("  dynamic inside a static channel", dict(allocation=0, dynamic_allocation=1)),
        ("  queue of 5 requests", dict(queue_length=5)),
        ("  buffer of 1 MiB", dict(dram__capacity=2**20)),
        ("1 package of 4 dies of 4 planes", one),
        ("  interleave", one | dict(advanced__command=8)),
        ("  two-plane program", one | dict(advanced__command=4)),
        ("  two-plane program and read", one | dict(advanced__command=20)),
        ("  two-plane and interleave", one | dict(advanced__command=28)),
        ("  the same, dynamic allocation", one | dict(advanced__command=28, allocation=0)),
    ]
    for name, settings in variants:
        reads, _ = there["as it is"].run(idle("R", 64), **settings)
        writes, counts = there["as it is"].run(idle("W", 64), **settings)
        both, _ = there["as it is"].run(mixed(), **settings)
        yield {
            "SSDsim": name,
            "read of 64": mean(reads, "R"),
            "write of 64": mean(writes, "W"),
            "mixed, reads": mean(both, "R"),
            "mixed, writes": mean(both, "W"),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--our-order", type=Path, metavar="PROGRAM")
    parser.add_argument("--floatgate", type=Path, default=FLOATGATE)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            there = {"as it is": Ssdsim(given.folder, folder / "as-it-is")}
            if given.our_order:
                there["our order"] = Ssdsim(given.folder, folder / "our-order", given.our_order)
            floatgate = Floatgate(given.floatgate, folder)
            tables = {
                "side_by_side": list(side_by_side(there, floatgate, folder)),
                "collection": list(collection(there, floatgate)),
                "ssdsim_alone": list(what_it_has(there)),
            }
        except Refused as why:
            print(why, file=sys.stderr)
            return 2
    if given.json:
        print(json.dumps(tables, indent=1))
    else:
        print("Mean responses in us. S: SSDsim, F: Floatgate; what the columns mean: docs/validation.md\n")
        print("\n\n".join(aligned(rows, SHARES) for rows in tables.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

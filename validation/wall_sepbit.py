#!/usr/bin/env python3
"""The simulator of SepBIT (Wang and others, FAST 2022) on the work of docs/wall.md.

It is not part of Floatgate and is not fetched or built here. Get github.com/fallfish/sepbit, build its folder
trace_replay as its README says, and name the class path that holds it and its libraries:

    python3 validation/wall_sepbit.py CLASSPATH

It is a log-structured store, not a drive: it has no size, and collects whenever more than a share of what it holds is
garbage. That share is the spare space here.
"""

import argparse
import re
import sys

from common import PAGE_BYTES, PAGES, Refused, measured_run, row, twice, wall

# Policy, placement and its number of open segments.
VARIANTS = [
    ("Greedy", "NoSep", 1),
    ("CostBenefit", "NoSep", 1),
    ("CostBenefit", "SepGC", 2),
    ("CostBenefit", "SepBIT", 6),
]


def write_input(folder, work, measured):
    for name in ("indexmap", "segments", "ondiskfifo"):
        (folder / name).mkdir(exist_ok=True)
    with open(folder / "0.csv", "w") as out:
        for i, page in enumerate(work.pages(measured)):
            out.write(f"0,W,{page * PAGE_BYTES},{PAGE_BYTES},{i + 1}\n")
    (folder / "list.txt").write_text(f"{folder}/0.csv\n")
    (folder / "sizes").write_text(f"0 {work.logical} {work.logical * PAGE_BYTES}\n")


def play(classpath, work, folder, policy, placement, segments):
    options = {
        "--path": folder / "list.txt",
        "--propertyPath": folder / "sizes",
        "--outputPrefix": f"{folder}/",
        "--selectionAlgorithm": policy,
        "--setSeparateMethod": placement,
        "--setNumOpenSegments": segments,
        "--setSystemGarbageProportionThreshold": f"{work.spare:.9f}",
        "--setSegmentSize": PAGES * PAGE_BYTES,
        "--setPickSegAmount": 1,
        "--indexMapType": "PureInMem",
        "--indexMapCache": "Null",
        "--printGCInfo": 0,
        "--printSegmentInSummary": 0,
    }
    words = [str(word) for pair in options.items() for word in pair]

    def once(measured):
        write_input(folder, work, measured)
        text, seconds, mib = measured_run(["java", "-cp", classpath, "gcsimulator.Simulator", *words], folder)
        found = re.search(r"segment WA = ([\d.]+)", text)
        if not found:
            raise Refused(f"no write amplification in its output: {text[-200:].strip()}")
        writes = sum(1 for _ in work.pages(measured))
        return {"host": writes, "all": float(found[1]) * writes}, seconds, mib

    return twice(once)


def make(given):
    def rows(whole, folder):
        work = whole.shortened(5)  # it keeps every segment in files
        for policy, placement, segments in VARIANTS:
            got, seconds, mib = play(given.classpath, work, folder, policy, placement, segments)
            name = f"SepBIT's, {policy}, {placement}"
            yield row(work, name, got["all"] - got["host"], got["host"], None, seconds, mib)

    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("classpath", metavar="CLASSPATH")
    sys.exit(wall(parser, make))

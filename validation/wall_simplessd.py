#!/usr/bin/env python3
"""SimpleSSD (Jung and others), standalone, on the work of docs/wall.md.

It is not part of Floatgate and is not fetched or built here. Get github.com/SimpleSSD/SimpleSSD-Standalone with its
submodules, build it as its README says, and name the program and the folder of the sources, whose two configuration
files are used:

    python3 validation/wall_simplessd.py PROGRAM FOLDER
"""

import argparse
import re
import sys

from common import PAGE_BYTES, PAGES, Refused, measured_run, program, row, twice, wall

# With one chip its collection copies the pages that are no longer valid too, never wins space, and ends with "No free
# block left" (`Block::getPageInfo` asks nobody if there is one page a superpage). So two channels: superblocks of 128.
CHANNELS = 2
RESERVE = 4  # erased superblocks that its threshold keeps
POLICIES = {"greedy": 0, "cost-benefit": 1, "d-choices": 3}


def changed(text, values):
    """The text of a configuration with other values, by (section, key)."""
    values, section, lines = dict(values), None, []
    for line in text.splitlines():
        if head := re.match(r"\[(\w+)\]", line):
            section = head[1]
        key = (section, line.split("=")[0].strip())
        lines.append(f"{key[1]} = {values.pop(key)}" if key in values else line)
    if values:
        raise Refused(f"a configuration file of SimpleSSD's has no {sorted(values)}")
    return "\n".join(lines) + "\n"


def of_the_host():
    values = {
        ("global", "Mode"): 1,
        ("global", "LogPeriod"): 0,
        ("trace", "File"): "./work",
        ("global", "DebugLogFile"): "",
        ("trace", "TimingMode"): 0,  # one after the other: at the times of the trace it looks for work in all gaps
        ("trace", "Regex"): r'"(\d+) (\w) (\d+) (\d+)"',
        ("trace", "Operation"): 2,
        ("trace", "ByteOffset"): 3,
        ("trace", "ByteLength"): 4,
        ("trace", "LBAOffset"): "",
        ("trace", "LBALength"): "",
        ("trace", "Second"): "",
        ("trace", "Nanosecond"): 1,
    }
    return values


def of_the_drive(work, policy):
    blocks = round(work.data_blocks / CHANNELS) + RESERVE
    pal = dict(Channel=CHANNELS, Package=1, Die=1, Plane=1, Block=blocks, Page=PAGES, PageSize=PAGE_BYTES)
    pal |= dict(EnableMultiPlaneOperation=0, LSBRead=50_000_000, MSBRead=50_000_000)
    pal |= dict(LSBWrite=500_000_000, MSBWrite=500_000_000, Erase=3_500_000_000)
    ftl = {
        # A little less than is wanted to leave: it rounds the number of logical blocks down.
        "OverProvisioningRatio": f"{1 - (work.logical / PAGES / CHANNELS + 0.5) / blocks:.9f}",
        "EvictPolicy": POLICIES[policy],
        "GCThreshold": f"{(RESERVE + 0.5) / blocks:.9f}",
    }
    icl = dict(EnableReadCache=0, EnableReadPrefetch=0, EnableWriteCache=0)
    parts = dict(pal=pal, ftl=ftl, icl=icl)
    return {(part, key): value for part, values in parts.items() for key, value in values.items()}


def make(given):
    simulator, sources = program(given.program), program(given.folder)
    host, drive = ((sources / name).read_text() for name in ("config/sample.cfg", "simplessd/config/sample.cfg"))

    def play(work, folder, policy):
        (folder / "host.cfg").write_text(changed(host, of_the_host()))
        (folder / "drive.cfg").write_text(changed(drive, of_the_drive(work, policy)))

        def once(measured):
            with open(folder / "work", "w") as out:
                for i, page in enumerate(work.pages(measured)):
                    out.write(f"{i + 1} W {page * PAGE_BYTES} {PAGE_BYTES}\n")
            text, seconds, mib = measured_run([simulator, "host.cfg", "drive.cfg", "."], folder)
            found = re.search(r"gc\.page_copies\s+([\d.]+)", text)
            if not found:
                raise Refused(f"no counters in its output: {text[-200:].strip()}")
            writes = sum(1 for _ in work.pages(measured))
            mean = re.search(r"Average latency[^\d]*([\d.]+)", text)
            return {"host": writes, "gc": float(found[1]), "us": float(mean[1]) * writes if mean else 0}, seconds, mib

        return twice(once)

    def rows(whole, folder):
        work = whole.shortened(10)  # its collection looks through all blocks, and through their bits
        for policy in POLICIES:
            got, seconds, mib = play(work, folder, policy)
            us = got["us"] / got["host"] or None
            yield row(work, f"SimpleSSD, {policy}", got["gc"], got["host"], us, seconds, mib)

    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("folder", metavar="FOLDER")
    sys.exit(wall(parser, make))

#!/usr/bin/env python3
"""FlashSim (Kim, Tauras and others; with the schemes of Bjorling) on the work of docs/wall.md.

It is not part of Floatgate and is not fetched or built here. Get github.com/MatiasBjorling/flashsim, build it as its
Makefile does, and name the folder: its program `ufliptrace` and its ssd.conf are used.

    python3 validation/wall_flashsim.py FOLDER

It plays a file of requests twice and counts the second time. There is no fill before: the first time is.
"""

import argparse
import csv
import re
import sys

from common import GAP_US, PAGE_BYTES, PAGES, Refused, measured_run, program, row, wall

RESERVED = 100  # blocks that DFTL sets aside for its map
SCHEMES = {"page": 0, "DFTL": 3}


def configuration(text, work, scheme):
    blocks = work.data_blocks + RESERVED
    values = dict(SSD_SIZE=1, PACKAGE_SIZE=1, DIE_SIZE=1, PLANE_SIZE=blocks, BLOCK_SIZE=PAGES, PAGE_ENABLE_DATA=0)
    values |= dict(MAP_DIRECTORY_SIZE=RESERVED, FTL_IMPLEMENTATION=SCHEMES[scheme], PAGE_SIZE=PAGE_BYTES)
    values |= dict(PAGE_READ_DELAY=50, PAGE_WRITE_DELAY=500, BLOCK_ERASE_DELAY=3500)
    for key, value in values.items():
        line, found = f"{key} {value}", re.search(rf"^{key} .*$", text, re.M)
        text = text.replace(found[0], line) if found else f"{text}\n{line}\n"
    return text


def make(given):
    there = program(given.folder)
    simulator, settings = program(there / "ufliptrace"), (there / "ssd.conf").read_text()

    def rows(whole, folder):
        work = whole.shortened(5)
        (folder / "requests").mkdir()
        with open(folder / "requests" / "MIX_0.txt", "w") as out:
            for i, page in enumerate(work.writes[: work.warm + work.count]):
                out.write(f"R; W; {page}; 0; 1; {i * GAP_US}.0\n")
        for scheme in SCHEMES:
            (folder / "ssd.conf").write_text(configuration(settings, work, scheme))
            _, seconds, mib = measured_run([simulator, "requests/"], folder, typed="\n\n\n")
            with open(folder / "output.log") as lines:
                got = next(csv.DictReader(lines, delimiter=";"), None)
            if not got:
                raise Refused("no figures in output.log")
            writes, moved = int(got["NumIOWrites"]), int(got["numWLWrite"])
            us = float(got["WriteIOTime"]) / writes
            yield row(work, f"FlashSim, {scheme}", moved, writes, us, seconds, mib, 2 * writes)

    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", metavar="FOLDER")
    sys.exit(wall(parser, make))

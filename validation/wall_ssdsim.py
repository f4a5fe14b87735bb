#!/usr/bin/env python3
"""SSDsim (Hu and others, HUST) on the work of docs/wall.md, with the folder that ssdsim.py takes:

    python3 validation/wall_ssdsim.py FOLDER
"""

import argparse
import sys

from common import GAP_US, PAGES, program, row, twice, wall
from ssdsim import Ssdsim

RESERVE = 4
ONE_DIE = {"channel number": 1, "chip number": 1, "chip number[0]": 1, "packages": 1}
TIMES = {"t_PROG": 500_000, "t_R": 50_000, "t_BERS": 3_500_000}


def make(given):
    built = program(given.folder)

    def rows(work, folder):
        simulator = Ssdsim(built, folder / "ssdsim")
        blocks = work.data_blocks + RESERVE
        threshold = (RESERVE + 0.5) / blocks
        settings = ONE_DIE | TIMES | {"block number": blocks, "overprovide": 1 - (work.logical + 1) / (blocks * PAGES)}
        settings |= {"gc threshold": threshold, "gc hard threshold": threshold}

        def once(measured):
            requests = [(i * GAP_US * 1000, "W", page, 1) for i, page in enumerate(work.pages(measured))]
            responses, counts = simulator.run(requests, **settings)
            us = sum(value for found in responses.values() for value in found) / 1000
            return {"host": len(requests), "all": counts["programs"], "us": us}, simulator.seconds, simulator.mib

        got, seconds, mib = twice(once)
        us = got["us"] / got["host"]
        yield row(work, "SSDsim", got["all"] - got["host"], got["host"], us, seconds, mib)

    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", metavar="FOLDER")
    sys.exit(wall(parser, make))

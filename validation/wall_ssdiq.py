#!/usr/bin/env python3
"""The simulator of the SSD-iq study (Haas and others) on the work of docs/wall.md.

It is not part of Floatgate and is not fetched or built here. Get github.com/gabriel-haas/ssdiq-pub, build its
simulator as its README says, and name the program:

    python3 validation/wall_ssdiq.py sim/sim

It draws its own addresses: work of the same kind, not the same requests.
"""

import argparse
import os
import re
import sys

from common import PAGE_BYTES, PAGES, Refused, measured_run, program, row, wall

ROUNDS = 8  # as many writes as there are logical pages, measured


def environment(work, policy):
    cold = 1 - work.skew
    patterns = {
        "uniform": dict(PATTERN="uniform"),
        "zipf": dict(PATTERN="zipf", ZIPF=str(work.skew)),
        "hot-cold": dict(PATTERN="zones", ZONES=f"s{work.skew} f{cold:.2f} s{cold:.2f} f{work.skew}"),
    }
    if work.pattern not in patterns:
        raise Refused("it plays no traces: `Currently no supported`")
    block = PAGES * PAGE_BYTES
    sizes = dict(CAPACITY=str(work.data_blocks * block), ERASE=str(block), PAGE=str(PAGE_BYTES))
    # Half a page more than wanted: it rounds the share of logical pages down.
    fill = (work.logical + 0.5) / (work.data_blocks * PAGES)
    return os.environ | sizes | patterns[work.pattern] | dict(SSDFILL=f"{fill:.9f}", GC=policy, WRITES=str(ROUNDS))


def play(simulator, work, folder, policy):
    text, _, mib = measured_run([simulator], folder, env=environment(work, policy))
    # ... repetition, seconds since the first; and last: WA of the repetition, WA since the first
    rounds = re.findall(r"^bench,[^,]*,(\d+),([\d.]+),.*,([\d.]+)$", text, re.M)
    if not rounds:
        raise Refused(f"no figures in its output: {text[-200:].strip()}")
    return work.logical * ROUNDS, float(rounds[-1][2]), float(rounds[-1][1]), mib


def make(given):
    simulator = program(given.simulator)

    def rows(work, folder):
        for policy in ("greedy", "2r-greedy", "2r-fifo"):
            writes, amplification, seconds, mib = play(simulator, work, folder, policy)
            yield row(work, f"ssdiq, {policy}", (amplification - 1) * writes, writes, None, seconds, mib, writes)

    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulator", metavar="PROGRAM")
    sys.exit(wall(parser, make))

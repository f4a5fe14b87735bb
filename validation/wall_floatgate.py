#!/usr/bin/env python3
"""Floatgate and the closed formulas on the work of docs/wall.md.

    cargo build --release --bin floatgate
    python3 validation/wall_floatgate.py
"""

import argparse
import json
import sys

from common import GAP_US, PAGE_BYTES, PAGES, fifo, greedy, measured_run, row, twice, wall

RESERVE = 2
CHIP = dict(t_r_us=50, t_prog_us=500, t_bers_us=3500)


def formula(work):
    if work.pattern == "uniform":
        a = (work.data_blocks + 0.5) * PAGES / work.logical  # the half: docs/spec/analytic.md
        for name, law in (("formula, greedy", greedy), ("formula, FIFO", fifo)):
            yield dict.fromkeys(["work", "simulator", "writes", "WA", "response us", "writes/s", "MiB"]) | {
                "work": work.name,
                "simulator": name,
                "WA": law(a),
            }


def play(work, folder, floatgate, **scheme):
    device = {
        "device.part": "slc_large_block",
        "device.page_bytes": PAGE_BYTES,
        "device.dies": 1,
        "device.logical_pages": work.logical,
        "device.blocks_per_die": work.data_blocks + RESERVE,
        "run.start": "empty",
        "host.beyond": "error",
        "scheme.gc_low": RESERVE,
        "scheme.streams": "shared",
    }
    device |= {f"device.{key}": value for key, value in CHIP.items()}
    device |= {f"scheme.{key}": value for key, value in scheme.items()}
    sets = [word for key, value in device.items() for word in ("--set", f"{key}={value}")]

    def once(measured):
        with open(folder / "work.csv", "w") as out:
            out.write("time_ns,op,offset,size\n")
            for i, page in enumerate(work.pages(measured)):
                out.write(f"{i * GAP_US * 1000},W,{page * PAGE_BYTES},{PAGE_BYTES}\n")
        command = [floatgate, "run", "--scheme", "page", "--trace", "work.csv", "--json", *sets]
        text, seconds, mib = measured_run(command, folder)
        result = json.loads(text)["results"][0]
        programs, responses = result["counters"]["flash"]["programs"], result["time"]["response"]["write"]
        total = {"gc": programs["gc"], "host": programs["host"], "us": responses["mean_us"] * responses["count"]}
        return total, seconds, mib

    got, seconds, mib = twice(once)
    return got, seconds, mib


def make(given):
    def rows(work, folder):
        yield from formula(work)
        for policy in ("greedy", "fifo", "cost-benefit"):
            got, seconds, mib = play(work, folder, given.floatgate.resolve(), gc_policy=policy)
            yield row(work, f"Floatgate, {policy}", got["gc"], got["host"], got["us"] / got["host"], seconds, mib)

    return rows


if __name__ == "__main__":
    sys.exit(wall(argparse.ArgumentParser(description=__doc__.splitlines()[0]), make))

#!/usr/bin/env python3
"""Write amplification that real drives measured inside, beside what Floatgate predicts (docs/real-drives.md).

The measurements are those of the SSD-iq study (Haas, Lee, Bonnet, Leis, PVLDB 18(11), 2025). They carry no licence and
are not here. Get a clone of github.com/gabriel-haas/ssdiq-pub (8a0a3f4), bare or not, and name it:

    cargo build --release --bin floatgate
    python3 validation/real_drives.py CLONE
"""

import argparse
import csv
import io
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import FLOATGATE, PAGES, Refused, aligned, greedy, program, run

COMMIT = "8a0a3f4"
GIB = 2**30
# --- The drives as modelled. Fitted: docs/real-drives.md says to what. ---------------------------------------------

MICRON_FLASH_GIB, MICRON_OVERHEAD = 1071.0, 1.046
MICRON_GIB, MICRON_PRO_GIB = 745.2, 894.3
# Of flash that is erased together, tried for the zones; and whether a zone is trimmed before it is written again.
ZONE_MODELS, PAGES_A_UNIT = [(1, False), (2, False), (4, False), (2, True)], 1024
LOGICAL_BLOCKS, RESERVE = 1600, 2  # of the modelled device
AGED = {"run__ageing": '["replay"]'}
POLICIES = {
    "greedy": dict(scheme__gc_policy="greedy"),
    "FIFO": dict(scheme__gc_policy="fifo"),
    "d-choices (10)": dict(scheme__gc_policy="d-choices"),
    "cost-benefit": dict(scheme__gc_policy="cost-benefit"),
    "cost-benefit, split": dict(scheme__gc_policy="cost-benefit", scheme__streams="split"),
    "2r-fifo, split": dict(scheme__gc_policy="2r-fifo", scheme__streams="split"),
}
# By their names in the study's files.
DRIVES = {
    "mp0": "Micron 7450 MAX",
    "m0": "Micron 7450 PRO",
    "i1": "Solidigm P5520",
    "h0": "SK Hynix PE8110",
    "s0": "Samsung PM9A3",
    "k4": "Kioxia CM7-R",
    "wd": "WD (model not named)",
}
THETAS = [0.2, 0.4, 0.6, 0.8, 1.0]
PATTERN, DETAILS, WRITE_MIBS = 7, 8, 14  # columns of the skew sweep, whose files do not all have a heading
WINDOWS = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4]  # host writes since the fill, in sizes of the drive
PERCENTILES = {"50p": "p50_us", "90p": "p90_us", "99p": "p99_us", "99p9": "p99_9_us"}  # theirs: ours

# --- Reading the study's files --------------------------------------------------------------------------------------


def text_of(clone, path):
    done = subprocess.run(["git", "-C", clone, "show", f"{COMMIT}:{path}"], capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"{clone}: no {path} at {COMMIT}: {done.stderr.strip()}")
    return done.stdout


def rows_of(clone, path):
    # Its headings have blanks after some commas.
    heading, _, body = text_of(clone, path).partition("\n")
    return list(csv.DictReader(io.StringIO(heading.replace(", ", ",") + "\n" + body)))


def runs_of(rows):
    """The rows of each run; of one that was made again, the later."""
    runs = {}
    for row in rows:
        runs.setdefault(row["hash"], []).append(row)
    return [run for run in runs.values() if len(run) > 100]


def counted(run):
    """Bytes written to flash over bytes written by the host, by the drive's counter, in the last quarter of a run."""
    part = run[len(run) * 3 // 4 :]
    grown = lambda column: float(part[-1][column]) - float(part[0][column])
    return grown("physicalMediaUnitsWrittenBytes") / (grown("writesTotal") * float(run[0]["bs"]))


# --- What Floatgate says ------------------------------------------------------------------------------------------


def simulated(floatgate, logical, physical, trace, pages=PAGES, **settings):
    """Write amplification of `page` on one die of so many logical and physical blocks."""
    device = {
        "device.part": "slc_large_block",
        "device.page_bytes": 4096,
        "device.dies": 1,
        "device.pages_per_block": pages,
        "device.logical_pages": logical * pages,
        "device.blocks_per_die": physical + RESERVE,
        "scheme.gc_low": RESERVE,
        "scheme.streams": "shared",
        "host.beyond": "error",
    }
    device |= {key.replace("__", "."): value for key, value in settings.items()}
    sets = [word for key, value in device.items() for word in ("--set", f"{key}={value}")]
    done = run([floatgate, "run", "--scheme", "page", "--trace", trace, "--json", *sets])
    programs = json.loads(done.stdout)["results"][0]["counters"]["flash"]["programs"]
    return 1 + programs["gc"] / programs["host"]


def uniform(floatgate, logical, physical):
    trace = f"uniform:space={logical * PAGES}:requests={4 * logical * PAGES}"
    return simulated(floatgate, logical, physical, trace, run__ageing='["overwrite:2"]')


def solve_spare(amplification):
    """Physical over logical pages at which the closed formula for greedy victims gives this write amplification."""
    low, high = 1.001, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if greedy(middle) > amplification else (low, middle)
    return low


# --- Fill -------------------------------------------------------------------------------------------------------------


def fill_sweep(clone, floatgate):
    """Uniform writes to a part of the drive, the rest trimmed."""
    rows = rows_of(clone, "paper/finalop02b/iob-log-mp0op02.csv")
    levels = {float(run[0]["usedfilesize"]): counted(run) for run in runs_of(rows) if run[0]["pattern"] == "uniform"}
    for gib, measured in sorted(levels.items()):
        formula = MICRON_OVERHEAD * greedy(MICRON_FLASH_GIB / gib)
        physical = round(LOGICAL_BLOCKS * MICRON_FLASH_GIB / gib)
        ours = MICRON_OVERHEAD * uniform(floatgate, LOGICAL_BLOCKS, physical)
        yield {"GiB": round(gib), "measured": measured, "ours": ours, "error": ours / measured - 1} | {
            "formula": formula,
            "its error": formula / measured - 1,
        }


# --- Skew -------------------------------------------------------------------------------------------------------------


def p5520_run(clone, fill, kind):
    pattern = {"uni": "uniform", "zipf": "zipf-shuffle"}[kind]
    path = f"paper/finalinit07/iob-log-init07-san-{fill}-{kind}.csv"
    found = [run for run in runs_of(rows_of(clone, path)) if run[0]["pattern"] == pattern]
    if len(found) != 1:
        raise Refused(f"{path}: {len(found)} runs of {pattern} in place of one")
    return found[0]


def p5520(clone, floatgate):
    """Uniform writes fix the spare space; zipf is predicted from it with each rule."""
    mean = lambda kind: sum(counted(p5520_run(clone, fill, kind)) for fill in ("seq", "seqshuffle")) / 2
    uniform_measured, zipf_measured = mean("uni"), mean("zipf")
    a = solve_spare(uniform_measured)
    yield row_of_skew("measured", uniform_measured, zipf_measured)
    for name, settings in POLICIES.items():
        yield row_of_skew(name, *(skewed(floatgate, a, theta, settings) for theta in (0, 0.8)))


def row_of_skew(name, uniform_one, zipf_one):
    return {"P5520": name, "uniform": uniform_one, "zipf 0.8": zipf_one, "ratio": zipf_one / uniform_one}


def skewed(floatgate, a, theta, settings):
    pages = LOGICAL_BLOCKS * PAGES
    trace = f"zipf:space={pages}:theta={theta}" if theta else f"uniform:space={pages}"
    physical = round(LOGICAL_BLOCKS * a)
    return simulated(floatgate, LOGICAL_BLOCKS, physical, f"{trace}:requests={4 * pages}", **AGED, **settings)


def throughputs(clone, drive):
    """MiB/s of a thread in the last quarter of each run, by pattern and its details."""
    path = f"paper/finalwa14/iob-stats-id0-{drive}-finalwa14rozipf.csv"
    runs = {}
    for line in csv.reader(io.StringIO(text_of(clone, path))):
        if line[0] != "hash":
            runs.setdefault((line[PATTERN], line[DETAILS]), []).append(float(line[WRITE_MIBS]))
    return {key: sum(part) / len(part) for key, run in runs.items() if (part := run[len(run) * 3 // 4 : -1])}


def skew_sweep(clone, floatgate):
    """Throughput of uniform writes over that of zipf: the ratio of write amplifications, if the flash is the limit."""
    for drive, model in DRIVES.items():
        got = throughputs(clone, drive)
        base = got["uniform", ""]
        yield {"drive or rule": model} | {f"zipf {t}": base / got["zipf-shuffle", f"{t:.6f}"] for t in THETAS}
    for name, gib in (("MAX", MICRON_GIB), ("PRO", MICRON_PRO_GIB)):
        for rule in ("greedy", "cost-benefit"):
            ours = [skewed(floatgate, MICRON_FLASH_GIB / gib, theta, POLICIES[rule]) for theta in (0, *THETAS)]
            ratios = {f"zipf {t}": x / ours[0] for t, x in zip(THETAS, ours[1:])}
            yield {"drive or rule": f"ours, {name}, {rule}"} | ratios


# --- After a fill -----------------------------------------------------------------------------------------------------


def by_window(totals):
    """Flash over host writes between one window's end and the next; `totals`: (host, flash) at the ends."""
    return [(f - g) / (h - i) for (h, f), (i, g) in zip(totals[1:], totals)]


def measured_windows(run):
    size = float(run[0]["usedfilesize"]) * GIB
    totals = [(0.0, float(run[0]["physicalMediaUnitsWrittenBytes"]))]
    for row in run:
        host = float(row["writesTotal"]) * float(row["bs"])
        if len(totals) <= len(WINDOWS) and host >= WINDOWS[len(totals) - 1] * size * 0.999:
            totals.append((host, float(row["physicalMediaUnitsWrittenBytes"])))
    return by_window(totals)


def our_windows(floatgate, a, overhead, trace, settings):
    totals = [(0, 0)]
    for window in WINDOWS:
        writes = int(window * LOGICAL_BLOCKS * PAGES)
        physical = round(LOGICAL_BLOCKS * a)
        wa = simulated(floatgate, LOGICAL_BLOCKS, physical, f"{trace}:requests={writes}", **settings)
        totals.append((writes, overhead * wa * writes))
    return by_window(totals)


def after_a_fill(clone, floatgate):
    """Filled in order, then written at random: write amplification while that goes on."""
    rows = rows_of(clone, "paper/finalop02b/iob-log-mp0op02.csv")
    full = [run for run in runs_of(rows) if run[0]["pattern"] == "uniform" and float(run[0]["usedfilesize"]) > 745]
    spare = solve_spare(sum(counted(p5520_run(clone, fill, "uni")) for fill in ("seq", "seqshuffle")) / 2)
    space = LOGICAL_BLOCKS * PAGES
    works = [
        ("Micron 7450 MAX, uniform", full[0], MICRON_FLASH_GIB / MICRON_GIB, MICRON_OVERHEAD, f"uniform:space={space}"),
        ("P5520, uniform", p5520_run(clone, "seq", "uni"), spare, 1, f"uniform:space={space}"),
        ("P5520, zipf 0.8", p5520_run(clone, "seq", "zipf"), spare, 1, f"zipf:space={space}:theta=0.8"),
    ]
    for name, run, a, overhead, trace in works:
        rows = {"measured": measured_windows(run)}
        for rule in ("greedy", "2r-fifo, split"):
            rows[f"ours, {rule}"] = our_windows(floatgate, a, overhead, trace, POLICIES[rule])
        for what, values in rows.items():
            yield {"drive, writes": name, "": what} | dict(zip(map(str, WINDOWS), values))


# --- Zones ------------------------------------------------------------------------------------------------------------


def zone_writes(logical_pages, zone_pages, active, count, trims, seed=1):
    """`active` zones at a time are written in order, each then left for another drawn at random, and trimmed first."""
    zones, draw = logical_pages // zone_pages, random.Random(seed)
    writing = [[zone, 0] for zone in draw.sample(range(zones), active)]
    for _ in range(count):
        zone = draw.choice(writing)
        if zone[1] == zone_pages:
            busy = {number for number, _ in writing}
            while (other := draw.randrange(zones)) in busy:
                pass
            zone[:] = [other, 0]
        if trims and zone[1] == 0:
            yield "T", zone[0] * zone_pages, zone_pages
        yield "W", zone[0] * zone_pages + zone[1], 1
        zone[1] += 1


def zoned(floatgate, unit, zone_gib, active, trims):
    """The device in units of `unit` GiB; with few pages each, the turns of the zones would be too uneven."""
    logical, physical = round(MICRON_GIB / unit), round(MICRON_FLASH_GIB / unit)
    zone_pages = round(zone_gib * PAGES_A_UNIT / unit)
    count = 3 * logical * PAGES_A_UNIT
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "zones.csv"
        with open(file, "w") as out:
            out.write("time_ns,op,offset,size\n")
            for op, page, pages in zone_writes(logical * PAGES_A_UNIT, zone_pages, active, count, trims):
                out.write(f"0,{op},{page * 4096},{pages * 4096}\n")
        return MICRON_OVERHEAD * simulated(floatgate, logical, physical, file, PAGES_A_UNIT, **AGED)


def zones(clone, floatgate):
    for file in ("28/iob-log-mp0-finalwa28znstrim", "30/iob-log-mp0-finalwa30znstrimzonesize8GBz1to32"):
        for run in runs_of(rows_of(clone, f"paper/finalwa{file}.csv")):
            words = run[0]["patternDetails"].split()
            active, gib = int(words[1]), int(words[3]) * float(run[0]["bs"]) / GIB
            ours = {
                f"{unit} GiB, {'' if trims else 'no '}trims": zoned(floatgate, unit, gib, active, trims)
                for unit, trims in ZONE_MODELS
            }
            yield {"zone GiB": f"{gib:.2f}", "written at a time": active, "measured": counted(run)} | ours


# --- Latency ----------------------------------------------------------------------------------------------------------

# A five-hundredth of the drive's pages on as many dies as fit its speed.
DIES, BLOCKS_A_DIE = 64, 96
TIMED = {
    "device.part": "generic_tlc",
    "device.page_bytes": 4096,
    "device.pages_per_block": PAGES,
    "device.planes": 1,
    "device.dies": DIES,
    "device.channels": 8,
    "device.blocks_per_die": round(BLOCKS_A_DIE * MICRON_FLASH_GIB / MICRON_GIB),
    "device.logical_pages": DIES * BLOCKS_A_DIE * PAGES,
    "device.t_r_us": 55,
    "device.t_prog_us": 223,
    "device.t_bers_us": 1000,
    "scheme.gc_low": 4,
    "buffer.write_pages": 4096,
    "buffer.reserve_pages": 2048,
    "buffer.dram_ns_per_page": 9000,
    "schedule.suspend": "both",
    "run.ageing": '["overwrite:2"]',
}
LOADS = [10_000, 20_000, 30_000, 50_000, 70_000, 90_000, 120_000]


def timed(floatgate, rate, policy):
    """Percentiles in us at so many requests a second: one thread half reads, the others 99 % writes."""
    reads = 100 * (5_000 + 0.01 * (rate - 10_000)) / rate
    space = TIMED["device.logical_pages"]
    trace = f"uniform:space={space}:requests=300000:reads={reads:.1f}:arrival=exponential:gap={round(1e9 / rate)}"
    sets = [w for k, v in (TIMED | {"schedule.policy": policy}).items() for w in ("--set", f"{k}={v}")]
    done = run([floatgate, "run", "--scheme", "page", "--trace", trace, "--json", *sets])
    response = json.loads(done.stdout)["results"][0]["time"]["response"]
    return {op: [round(response[op][key]) for key in PERCENTILES.values()] for op in ("read", "write")}


def latency(clone, floatgate):
    """Percentiles of the measuring thread in the second half of a run, the median over its ten-second rows."""
    runs = {}
    for row in rows_of(clone, "paper/finallat10/iob-stats-id0-mp0-finallat10.csv"):
        if row["pattern"].startswith("uniform"):
            runs.setdefault(int(float(row["rate"])), []).append(row)
    for rate in LOADS:
        half = runs[rate][len(runs[rate]) // 2 :]
        measured = {
            op: [round(statistics.median(float(row[op[0] + key]) for row in half)) for key in PERCENTILES]
            for op in ("read", "write")
        }
        whose = {"measured": measured} | {f"ours, {p}": timed(floatgate, rate, p) for p in ("read-first", "host-first")}
        for name, values in whose.items():
            cells = {f"{op} {key}": v for op in values for key, v in zip(PERCENTILES, values[op])}
            yield {"requests/s": rate, "us": name} | cells


TABLES = [fill_sweep, p5520, skew_sweep, after_a_fill, zones, latency]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clone", metavar="CLONE")
    parser.add_argument("--floatgate", type=Path, default=FLOATGATE)
    parser.add_argument("--only", choices=[table.__name__ for table in TABLES], help="only this table")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    try:
        clone, floatgate = program(given.clone), program(given.floatgate)
        chosen = [table for table in TABLES if given.only in (None, table.__name__)]
        tables = {table.__name__: list(table(clone, floatgate)) for table in chosen}
    except Refused as why:
        print(why, file=sys.stderr)
        return 2
    shares = dict.fromkeys(["error", "its error"], lambda share: f"{100 * share:+.1f} %")
    print(json.dumps(tables, indent=1) if given.json else "\n\n".join(aligned(t, shares) for t in tables.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

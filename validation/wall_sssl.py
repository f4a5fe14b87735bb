#!/usr/bin/env python3
"""sssl-ftlsim (Desnoyers, Northeastern) on the work of docs/wall.md.

It is not part of Floatgate and is not fetched or built here. Get github.com/pjd-nu/sssl-ftlsim, build its Python
modules as its README says, and name the folder that holds ftlsim.py, getaddr.py and the two libraries beside them:

    python3 validation/wall_sssl.py FOLDER

Its own example scripts are written for Python 2; its modules are not, and are driven from here.
"""

import argparse
import json
import sys
from pathlib import Path

from common import PAGES, measured_run, program, row, twice, wall

RESERVE = 2


def inside(modules, policy, logical, data_blocks):
    """In a process of its own, so that its memory can be measured: plays the file `work`, prints its counters."""
    sys.path.insert(0, modules)
    import ftlsim
    import getaddr

    blocks = int(data_blocks) + RESERVE
    ftl = ftlsim.ftl(blocks, PAGES)
    ftl.minfree = ftl.maxfree = RESERVE  # unset, the latter is 0, and collection at a reserve never ends
    ftl.get_input_pool = ftlsim.cvar.write_select_first
    ftl.get_pool_to_clean = ftlsim.cvar.clean_select_first
    pool = ftlsim.pool(ftl, policy, PAGES)
    pool.next_pool = pool
    segments = [ftlsim.segment(PAGES) for _ in range(blocks)]
    for segment in segments:
        segment.thisown = False
    pool.add_segment(segments.pop())
    for segment in segments:
        ftl.put_blk(segment)
    with open("work") as lines:
        count = sum(1 for _ in lines)
    addresses = getaddr.trace("work")  # named, because the simulator keeps only a pointer into it
    ftl.run(addresses.handle, count)
    print(json.dumps({"host": ftl.ext_writes, "all": ftl.int_writes}))


def make(given):
    modules = program(given.modules)

    def play(work, folder, policy):
        def once(measured):
            (folder / "work").write_text("".join(f"{page} 1\n" for page in work.pages(measured)))
            own = [Path(__file__).resolve(), "--inside", modules, policy, work.logical, work.data_blocks]
            text, seconds, mib = measured_run([sys.executable, *map(str, own)], folder)
            return json.loads(text.splitlines()[-1]), seconds, mib

        return twice(once)

    def rows(work, folder):
        for policy, name in (("greedy", "greedy"), ("lru", "fifo")):
            got, seconds, mib = play(work, folder, policy)
            yield row(work, f"sssl-ftlsim, {name}", got["all"] - got["host"], got["host"], None, seconds, mib)

    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(inside(*sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", metavar="FOLDER")
    sys.exit(wall(parser, make))

#!/usr/bin/env python3
"""FEMU (Li, Hao and others), black-box mode, without KVM, on the work of docs/wall.md.

It is not part of Floatgate and is not fetched or built here. Get github.com/MoatLab/FEMU and build its QEMU for
x86_64-softmmu (it needs TCG, the PC `q35`, a serial port and FEMU). Get a Linux kernel that has its NVMe driver and
Linux's asynchronous I/O built in (Debian's linux-image-cloud-amd64, unpacked, has). Compile the guest's only program,
which lies beside this script. Then name the three:

    gcc -O2 -static -o femu_guest validation/femu_guest.c
    python3 validation/wall_femu.py QEMU KERNEL femu_guest

Latencies are set to 0, as the emulated processor is slower than any flash: only counters are looked at.
"""

import argparse
import array
import itertools
import re
import sys

from common import PAGE_BYTES, PAGES, Refused, measured_run, program, row, wall

MIB = 1 << 20
GUEST_MIB = 256
COUNTERS = re.compile(r"^(before|after) host=(\d+) moved=(\d+)", re.M)
# It collects before a write, as long as the erased blocks are not above 100 - gc_thres_pcent_high per cent; and one
# victim after a request, if they are not above 100 - gc_thres_pcent per cent and an eighth of its pages is invalid.
ON_DEMAND = {"gc_thres_pcent": 100, "gc_thres_pcent_high": 99}
AS_IN_ITS_SCRIPT = {"gc_thres_pcent": 75, "gc_thres_pcent_high": 95}
RESERVE = 17  # one per cent, and the open block
KINDS = {
    "greedy": {"gc_policy": "greedy"} | ON_DEMAND,
    "FIFO": {"gc_policy": "fifo"} | ON_DEMAND,
    "cost-benefit": {"gc_policy": "cost-benefit"} | ON_DEMAND,
    "random": {"gc_policy": "random"} | ON_DEMAND,
    "greedy, thresholds 75 and 95": {"gc_policy": "greedy"} | AS_IN_ITS_SCRIPT,
    "FAST": {"mapping": "fast"} | ON_DEMAND,
    "BAST": {"mapping": "hybrid"} | ON_DEMAND,
}


def archive(files):
    """A first file system for Linux: a cpio archive, "newc"; `files` are (name, mode, bytes)."""
    out = bytearray()
    for number, (name, mode, content) in enumerate([*files, ("TRAILER!!!", 0, b"")]):
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        out += b"\0" * (-len(out) % 4) + content
        out += b"\0" * (-len(out) % 4)
    return bytes(out)


def work_file(work):
    """What the guest's program reads: two counts and all pages, 32 bits each."""
    before = work.logical + work.warm
    numbers = array.array("I", itertools.chain((before, work.count), work.pages(measured=True)))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def device(work, settings):
    drive = {"devsz_mb": -(-work.logical * PAGE_BYTES // MIB), "namespaces": 1, "queues": 1, "femu_mode": 1}
    drive |= {"secsz": 512, "secs_per_pg": PAGE_BYTES // 512, "pgs_per_blk": PAGES, "pls_per_lun": 1}
    drive |= {"blks_per_pl": work.data_blocks + RESERVE, "luns_per_ch": 1, "nchs": 1}
    drive |= dict.fromkeys(("pg_rd_lat", "pg_wr_lat", "blk_er_lat", "ch_xfer_lat"), 0) | settings
    return ",".join(["femu", *(f"{key}={value}" for key, value in drive.items())])


def make(given):
    qemu, kernel, guest = program(given.qemu), program(given.kernel), program(given.guest)
    machine = ["-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", GUEST_MIB]
    machine += ["-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot", "-serial", "file:console"]
    machine += ["-kernel", kernel, "-initrd", "first", "-append", "console=ttyS0 quiet panic=-1 no_timer_check"]

    def play(folder, name, work):
        (folder / "console").unlink(missing_ok=True)
        command = [qemu, *machine, "-device", device(work, KINDS[name])]
        _, seconds, mib = measured_run(command, folder)
        said = (folder / "console").read_text(errors="replace")
        found = {when: (int(host), int(moved)) for when, host, moved in COUNTERS.findall(said)}
        if "guest: passed" not in said or len(found) != 2:
            raise Refused(f"the guest did not come to its end: {said[-300:].strip()}")
        host, moved = (after - before for before, after in zip(found["before"], found["after"]))
        return row(work, f"FEMU, {name}", moved, host, None, seconds, mib)

    def rows(work, folder):
        files = [("init", 0o100755, guest.read_bytes()), ("work", 0o100644, work_file(work))]
        (folder / "first").write_bytes(archive(files))
        for name in KINDS:
            if not given.kind or given.kind == name:
                yield play(folder, name, work)

    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("qemu", metavar="QEMU")
    parser.add_argument("kernel", metavar="KERNEL")
    parser.add_argument("guest", metavar="GUEST")
    parser.add_argument("--kind", choices=KINDS, help="only this")
    sys.exit(wall(parser, make))

"""A journal as small as one can be, straight on a device: three accounts whose sum never changes.

journal.py write DEVICE [--forget-flush]   transfers; says "done N" after each, and waits for an answer
journal.py check STATE MARKS               recovers, and sees whether the sum and all that was done are there

Sectors 0 to 2 are the accounts, 8 to 10 the journal's copy of them, 16 its commit record.
"""
import os
import struct
import sys
import zlib

SECTOR, ACCOUNTS, JOURNAL, COMMIT = 512, 0, 8, 16
TRANSFERS = 6


def sector(*numbers):
    body = struct.pack("<3Q", *numbers, *[0] * (3 - len(numbers))).ljust(SECTOR - 4, b"\0")
    return body + struct.pack("<I", zlib.crc32(body))


def numbers(device, at):
    data = os.pread(device, SECTOR, at * SECTOR)
    if data == bytes(SECTOR):
        return None
    assert zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0], f"sector {at}"
    return struct.unpack("<3Q", data[:24])


def put(device, at, *values):
    os.pwrite(device, sector(*values), at * SECTOR)


def write(path, forget_flush):
    device = os.open(path, os.O_RDWR)
    for n in range(1, TRANSFERS + 1):
        balances = [100 + n, 100 - n, 100]
        for account, balance in enumerate(balances):
            put(device, JOURNAL + account, balance, n)
        if not forget_flush:
            os.fsync(device)  # the journal is there before the record that says so
        put(device, COMMIT, n)
        os.fsync(device)
        for account, balance in enumerate(balances):
            put(device, ACCOUNTS + account, balance, n)
        print(f"done {n}", flush=True)
        sys.stdin.readline()
        os.fsync(device)  # before the journal is written over


def check(path, marks):
    said = [int(line.split()[1]) for line in open(marks)]
    device = os.open(path, os.O_RDWR)
    committed = (numbers(device, COMMIT) or (0,))[0]
    if committed:
        # A journal that belongs to a later transfer was not committed: then the accounts themselves are whole.
        copies = [numbers(device, JOURNAL + account) for account in range(3)]
        if all(copy and copy[1] <= committed for copy in copies):
            for account, copy in enumerate(copies):
                put(device, ACCOUNTS + account, copy[0], copy[1])
    accounts = [numbers(device, ACCOUNTS + account) or (100, 0) for account in range(3)]
    found = [n for _, n, _ in [(a + (0,))[:3] for a in accounts]]
    assert sum(account[0] for account in accounts) == 300, f"the sum of {accounts} is not 300"
    assert len(set(found)) == 1, f"accounts of different transfers: {accounts}"
    assert found[0] >= max(said, default=0), f"done {said[-1]} was said, and {found[0]} is there"


if sys.argv[1] == "write":
    write(sys.argv[2], "--forget-flush" in sys.argv)
else:
    check(sys.argv[2], sys.argv[3])

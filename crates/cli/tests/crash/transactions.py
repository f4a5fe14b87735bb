"""Transactions of SQLite, or files, on a mounted file system; each is said once it is promised to be there.

transactions.py sqlite FOLDER JOURNAL_MODE SYNCHRONOUS COUNT     says "done N", and waits for an answer
transactions.py files FOLDER COUNT                               the same
transactions.py check-sqlite FOLDER MARKS
transactions.py check-files FOLDER MARKS
"""
import hashlib
import os
import sqlite3
import sys


def said(marks):
    return [int(line.split()[1]) for line in open(marks) if line.startswith("done ")]


def tell(n):
    print(f"done {n}", flush=True)
    sys.stdin.readline()


def payload(n):
    return hashlib.sha256(str(n).encode()).digest() * (1 + n * 7 % 90)


def sqlite(folder, mode, synchronous, count):
    base = sqlite3.connect(f"{folder}/base", isolation_level=None)
    found = base.execute(f"PRAGMA journal_mode={mode}").fetchone()[0]
    assert found.lower() == mode.lower(), found
    base.execute(f"PRAGMA synchronous={synchronous}")
    base.execute("CREATE TABLE rows (n INTEGER PRIMARY KEY, body BLOB)")
    base.execute("CREATE INDEX bodies ON rows (body)")
    tell(0)
    for n in range(1, count + 1):
        base.execute("BEGIN")
        base.execute("INSERT INTO rows VALUES (?, ?)", (n, payload(n)))
        if n % 5 == 0:
            base.execute("UPDATE rows SET body = ? WHERE n = ?", (payload(n + 1), n - 4))
        base.execute("COMMIT")
        tell(n)


def check_sqlite(folder, marks):
    done = said(marks)
    if not done:
        return
    base = sqlite3.connect(f"{folder}/base")
    found = base.execute("PRAGMA integrity_check").fetchall()
    assert found == [("ok",)], found
    rows = dict(base.execute("SELECT n, body FROM rows"))
    for n in range(1, done[-1] + 1):
        assert n in rows, f"transaction {n} of {done[-1]} is lost"
        # A later transaction, done or not, may have changed it.
        assert rows[n] in (payload(n), payload(n + 5)), f"transaction {n}: other bytes"


def files(folder, count):
    for n in range(count):
        path = f"{folder}/d{n % 4}"
        os.makedirs(path, exist_ok=True)
        file = os.open(f"{path}/new", os.O_CREAT | os.O_WRONLY)
        os.write(file, payload(n))
        os.fsync(file)
        os.rename(f"{path}/new", f"{path}/{n}")
        for name in (path, folder):
            directory = os.open(name, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
        os.close(file)
        if n >= 8 and n % 3 == 0:
            os.unlink(f"{folder}/d{(n - 8) % 4}/{n - 8}")
        tell(n)


def check_files(folder, marks):
    done = said(marks)
    for n in done:
        # One that was to be removed may be there or not.
        later = n + 8
        path = f"{folder}/d{n % 4}/{n}"
        if later % 3 == 0 and not os.path.exists(path):
            assert later <= done[-1] + 1, f"file {n} is lost"
            continue
        assert open(path, "rb").read() == payload(n), f"file {n}: other bytes"


what, folder, *rest = sys.argv[1:]
if what == "sqlite":
    sqlite(folder, rest[0], rest[1], int(rest[2]))
elif what == "files":
    files(folder, int(rest[0]))
elif what == "check-sqlite":
    check_sqlite(folder, rest[0])
else:
    check_files(folder, rest[0])

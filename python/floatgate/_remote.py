"""Traces that an address names (``s3://bucket/mine.csv.gz``, whatever fsspec opens), brought to where they are read."""

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from .errors import InputError

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")
"""How an address begins: no path, bundled trace or generator does."""

CACHE = "FLOATGATE_CACHE"
"""The variable of the environment that names the folder of copies."""

COPY = "--copy"
"""The flag that says where a trace lies: ``--copy NAME FILE``."""

TOLD = ("etag", "content-md5", "md5hash", "checksum", "generation", "mtime", "lastmodified", "last-modified", "last_modified",
        "created", "size")
"""What of the description of a file tells it from itself after a change."""


def is_address(name: str) -> bool:
    """Whether a trace lies behind an address.

    >>> is_address("s3://bucket/a.csv"), is_address("simplecache::s3://bucket/a.csv")
    (True, True)
    >>> is_address("mine.csv"), is_address("zipf:space=64:requests=9"), is_address("C:/mine.csv")
    (False, False, False)
    """
    return ADDRESS.match(name) is not None


def library(address: str) -> Any:
    """fsspec, which is loaded when an address is met."""
    try:
        return import_module("fsspec")
    except ImportError as error:
        raise InputError(f"{address}: addresses need fsspec\n  help: pip install 'floatgate[remote]'") from error


def opened(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path there."""
    fsspec = library(address)
    try:
        file_system, path = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        # Of a file system whose library is missing the text says which one it is.
        raise InputError(f"{address}: {error}") from error
    return file_system, path


def folder() -> Path:
    """The folder of copies on this machine."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "floatgate" / "traces"


def copied(address: str) -> Path:
    """A file of this machine with what the address names: made if there is none of the file as it is now."""
    file_system, path = opened(address)
    # What lies on this machine is read where it lies.
    if "file" in ([file_system.protocol] if isinstance(file_system.protocol, str) else file_system.protocol):
        return Path(path)
    try:
        about: dict[str, Any] = file_system.info(path)
        if about.get("type") == "directory":
            raise InputError(f"{address}: this is a folder, not a trace")
        told = {key: str(value) for key, value in about.items() if key.lower() in TOLD}
        stamp = sha256(json.dumps([address, told], sort_keys=True).encode()).hexdigest()[:32]
        copy = folder() / stamp / base_name(path)
        if not copy.exists():
            bring(file_system, path, copy)
    except InputError:
        raise
    except Exception as error:  # every file system has errors of its own
        raise InputError(f"{address}: {type(error).__name__}: {error}") from error
    return copy


def base_name(path: str) -> str:
    """The last part of a path, whose ending may tell the format.

    >>> base_name("bucket/mine.csv.gz"), base_name("http://host/a.csv?version=3"), base_name("http://host/")
    ('mine.csv.gz', 'a.csv', 'trace')
    """
    name = re.split("[?#]", path.rsplit("/", 1)[-1])[0]
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name).lstrip(".") or "trace"


def bring(file_system: Any, path: str, copy: Path) -> None:
    """Brings a file here; it takes its name when it is whole, whoever brings it at the same time."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=copy.parent, prefix=".")
    os.close(handle)
    try:
        file_system.get_file(path, unfinished)
        # The folder's name tells one state of the file from another; when it was copied says nothing.
        os.utime(unfinished, (0, 0))
        os.replace(unfinished, copy)
    except BaseException:
        os.unlink(unfinished)
        raise


def words(names: Iterable[str]) -> list[str]:
    """The words that say where traces lie, of those that are addresses."""
    return [word for name in dict.fromkeys(names) if is_address(name) for word in (COPY, name, str(copied(name)))]


def here(given: list[str]) -> list[str]:
    """Words that were written elsewhere, with the copies of this machine."""
    found, at = list(given), 0
    # They stand before all other words.
    while found[at : at + 1] == [COPY]:
        found[at + 2] = str(same(found[at + 1], Path(found[at + 2])))
        at += 3
    return found


def same(address: str, there: Path) -> Path:
    """The copy of this machine of what was ``there`` when the work was planned."""
    near = folder() / there.parent.name / there.name
    if near.exists():
        return near
    copy = copied(address)
    if copy.parent.name != there.parent.name and copy != there:
        raise InputError(f"{address} is another file now than when the work was planned")
    return copy


def spread(names: Iterable[str]) -> Iterator[str]:
    """Names, with the files of a folder or a pattern (``s3://bucket/*.csv.gz``) in place of an address, by their names."""
    for name in names:
        # Of a web server nobody knows what it has, but by reading the whole of a page.
        if not is_address(name) or "::" in name or name.startswith("http"):
            yield name
            continue
        file_system, path = opened(name)
        try:
            if any(sign in path for sign in "*?["):
                found = file_system.glob(path)
            elif file_system.isdir(path):
                found = file_system.find(path, maxdepth=1)
            else:
                yield name
                continue
        except Exception as error:  # every file system has errors of its own
            raise InputError(f"{name}: {type(error).__name__}: {error}") from error
        whole = [one for one in sorted(found) if not one.rsplit("/", 1)[-1].startswith(".")]
        if not whole:
            raise InputError(f"{name}: there is no file")
        yield from (file_system.unstrip_protocol(one) for one in whole)

"""Work on executors: any of ``concurrent.futures``, processes of one's own, what Dask has. A piece of work, an errand, is a cell
of a sweep or a volume of a fleet."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from typing import Protocol, TypeAlias, Union

from .errors import FloatgateError

IN_FLIGHT = 256
"""Errands that are with an executor at a time: enough for a cluster, and few enough that none holds them all."""

Came: TypeAlias = tuple[str | None, str]
"""What came of an errand; of one that was lost ``None``, and why."""

Play: TypeAlias = Callable[[str], str]
"""Does an errand: what executors are given to do."""


class Cluster(Protocol):
    """A client of Dask."""

    def get_executor(self) -> Executor: ...


Where: TypeAlias = Union[Executor, Cluster, None]
"""Who does errands: an executor, a client of Dask, or processes of this machine."""


def lost(error: BaseException) -> Came:
    """Why an errand was lost."""
    return None, f"{type(error).__name__}: {error}"


def all_of(play: Play, errands: dict[str, str], where: Where, jobs: int | None) -> Iterator[tuple[str, Came]]:
    """What came of every errand, by its key, as it comes."""
    if where is None and jobs == 1:
        for key, errand in errands.items():
            yield key, (play(errand), "")
        return
    if where is None:
        yield from by_processes(play, errands, jobs or available())
        return
    executor = where if isinstance(where, Executor) else where.get_executor()
    try:
        yield from through(play, executor, errands, IN_FLIGHT)
    except BrokenExecutor as error:
        text = f"the executor broke: {error}; with out=FILE the same call goes on where it was"
        raise FloatgateError(text) from error


def available() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def through(play: Play, executor: Executor, errands: dict[str, str], at_a_time: int) -> Iterator[tuple[str, Came]]:
    """What came of every errand, begun in their order, so many at a time; raises ``BrokenExecutor``."""
    waiting = list(errands.items())[::-1]
    flying: dict[Future[str], str] = {}
    try:
        while waiting or flying:
            while waiting and len(flying) < at_a_time:
                key, errand = waiting.pop()
                flying[executor.submit(play, errand)] = key
            done, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in done:
                came = came_of(future)
                yield flying.pop(future), came
    finally:
        for future in flying:
            future.cancel()


def came_of(future: "Future[str]") -> Came:
    """What came of an errand that is done."""
    error = future.exception()
    if error is None:
        return future.result(), ""
    if isinstance(error, (BrokenExecutor, KeyboardInterrupt)):
        raise error
    return lost(error)


def by_processes(play: Play, errands: dict[str, str], workers: int) -> Iterator[tuple[str, Came]]:
    """The same on processes of this machine. One that is killed (by a lack of memory, say) takes its pool with it: what was
    in flight is then done again, one errand at a time, so that only the errand is lost that does it again."""
    left = dict(errands)
    while left:
        begun, done = list(left), 0
        try:
            for key, came in on_pool(play, dict(left), min(workers, len(left))):
                done += 1
                del left[key]
                yield key, came
        except BrokenExecutor:
            for key in begun[: done + 2 * workers]:
                if key in left:
                    yield key, alone(play, key, left.pop(key))


def alone(play: Play, key: str, errand: str) -> Came:
    """What comes of one errand in a process of its own."""
    try:
        return next(came for _, came in on_pool(play, {key: errand}, 1))
    except BrokenExecutor:
        return None, "the process that played it was killed, twice; for a lack of memory?"


def greet(pool: Executor) -> None:
    """Finds out whether its processes come up at all, before an errand is blamed."""
    try:
        pool.submit(available).result()
    except BrokenExecutor as error:
        raise FloatgateError(
            "the processes that are to work cannot be started\n  help: a script needs `if __name__ == \"__main__\":` around "
            "what it does; jobs=1 does all in this process"
        ) from error


def on_pool(play: Play, errands: dict[str, str], workers: int) -> Iterator[tuple[str, Came]]:
    """Errands on a pool of their own, a few more than it has processes at a time."""
    # A process that was forked would have the threads of this one only by half.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    try:
        greet(pool)
        yield from through(play, pool, errands, 2 * workers)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)

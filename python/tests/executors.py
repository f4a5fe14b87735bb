"""Executors for tests."""

import subprocess
import sys
import textwrap
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any


class Counting(ThreadPoolExecutor):
    """Stops after some errands, and counts them."""

    def __init__(self, most: int) -> None:
        super().__init__(1)
        self.most, self.begun = most, 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        if self.begun == self.most:
            raise KeyboardInterrupt
        self.begun += 1
        # At once, so that nothing is begun that is not kept.
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


DASK = """
    import os, signal, sys
    import floatgate
    from distributed import Client, LocalCluster

    if __name__ == "__main__":
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            pids = sorted(client.run(os.getpid).values())
            killed = []

            def tell(phase, done, total):
                if done >= 15 and not killed:
                    os.kill(pids[0], signal.SIGKILL)
                    killed.append(pids[0])

            WORK
            print(len(killed), killed[0] in client.run(os.getpid).values())
"""


def by_dask(folder: Path, work: str, *words: str) -> list[str]:
    """Does work with a ``client`` of Dask, one of whose two workers is killed in the middle, as ``tell`` is told; the words that it
    printed, then how many were killed, and whether that one is still there."""
    script = folder / "dask.work.py"
    script.write_text(textwrap.dedent(DASK.replace("WORK", work)))
    ran = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()

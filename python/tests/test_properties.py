"""What holds for any trace and any number of runs."""

import gc
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import floatgate

REQUESTS = st.lists(
    st.tuples(
        st.sampled_from("RWTZ"),
        st.integers(0, 2**20),
        st.integers(1, 2**16),
        st.integers(0, 2**30),
        st.none() | st.integers(0, 65534),
    ),
    min_size=1,
    max_size=60,
)


def frame_of(requests: list[Any]) -> pl.DataFrame:
    """A frame of requests in the order of their arrival, the first at 0."""
    op, offset, size, gap, stream = zip(*requests, strict=True)
    arrival = [sum(gap[1 : i + 1]) for i in range(len(gap))]
    columns = {"arrival_ns": arrival, "op": op, "volume": [0] * len(op), "offset": offset, "bytes": size, "stream": stream}
    types = {"arrival_ns": pl.UInt64, "op": pl.String, "volume": pl.UInt32, "offset": pl.UInt64, "bytes": pl.UInt64, "stream": pl.UInt64}
    return pl.DataFrame(columns, schema=types)


@given(REQUESTS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_frame_goes_in_and_comes_out_as_it_was(tmp_path: Path, requests: list[Any]) -> None:
    frame = frame_of(requests)
    path = tmp_path / "t.parquet"
    frame.write_parquet(path)
    read = pl.DataFrame(floatgate.read_trace(path))
    assert read.equals(frame)
    assert floatgate.trace_info(frame)["statistics"] == floatgate.trace_info(path)["statistics"]


@given(REQUESTS, st.sampled_from(["page", "fast", "dftl"]))
@settings(max_examples=60, deadline=None)
def test_every_request_has_its_row_and_every_page_its_program(requests: list[Any], scheme: str) -> None:
    frame = frame_of(requests)
    data = frame.filter(pl.col("op").is_in(["R", "W"]))
    if data.is_empty():
        return
    run = floatgate.simulate(scheme, trace=frame, device={"dies": 1}, requests=True)
    rows = pl.DataFrame(run.requests)
    assert rows["request"].to_list() == list(range(len(frame)))
    assert (rows["end_ns"] >= rows["arrival_ns"]).all()
    written = rows.filter(op="W")["pages"].sum()
    counters = run.counters
    assert counters["host"]["page_writes"] == written == counters["flash"]["programs"]["host"]


def resident_kib() -> int:
    """What this process holds, KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def test_a_thousand_runs_leave_nothing() -> None:
    frame = pl.DataFrame(floatgate.read_trace("skew:space=1024:distinct=500:writes=1000"))

    def some(runs: int) -> int:
        for _ in range(runs):
            run = floatgate.simulate("fast", trace=frame, device={"dies": 1}, requests=True, progress=False)
            assert run.requests.num_rows == 1000
        gc.collect()
        return resident_kib()

    before = some(200)
    # A run holds some 300 KiB of tables alone: what each of a thousand left behind would be hundreds of MiB.
    assert some(1000) - before < 8 * 1024

"""Policies in plain Python: the counters of the rules in Rust, what they are told and when, and what comes of mistakes."""

import contextlib
import gc
import traceback
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floatgate
from floatgate import Blocks, Device, Moved, Placement, Selection, Writes

from .conftest import LOAD

ZIPF = "zipf:space=4096:requests=9000:theta=1.0"


class Greedy(Selection):
    def select(self, blocks: Blocks) -> Any:
        return blocks.valid.argmin()


class CostBenefit(Selection):
    def select(self, blocks: Blocks) -> Any:
        empty = blocks.valid == 0
        if empty.any():
            return empty.argmax()
        gain = blocks.age * (blocks.pages - blocks.valid)
        return (gain / (2 * blocks.valid)).argmax()


class Dac(Placement):
    classes = 4
    moves_together = True
    chunk = 1

    def place(self, writes: Writes) -> Any:
        return np.where(writes.lies_in < 0, 0, np.minimum(self.classes - 1, writes.lies_in + 1))

    def place_moved(self, moved: Moved) -> Any:
        return max(moved.lies_in - 1, 0)


class Split(Placement):
    moves_together = True

    def place(self, writes: Writes) -> Any:
        return 0

    def place_moved(self, moved: Moved) -> Any:
        return 1


class Handles(Placement):
    """``hint`` with two handles: stateless, so a chunk may be long."""

    classes = 3
    moves_together = True

    def place(self, writes: Writes) -> Any:
        return np.where((writes.stream >= 0) & (writes.stream < 2), writes.stream, 0)

    def place_moved(self, moved: Moved) -> Any:
        return 2


def counters(**settings: Any) -> dict[str, Any]:
    return floatgate.simulate("page", **{"trace": LOAD, **settings}).counters


@pytest.mark.parametrize("device", [{"dies": 1}, {"dies": 4}])
@pytest.mark.parametrize("trace", [LOAD, ZIPF])
def test_greedy_in_python_has_the_counters_of_greedy(trace: str, device: dict[str, int]) -> None:
    own = counters(trace=trace, device=device, selection=Greedy())
    assert own == counters(trace=trace, device=device)
    assert own["flash"]["programs"]["gc"] > 0


def test_so_has_cost_benefit() -> None:
    own = counters(trace=ZIPF, selection=CostBenefit())
    assert own == counters(trace=ZIPF, options={"gc_policy": "cost-benefit"})
    assert own != counters(trace=ZIPF)


@pytest.mark.parametrize("groups", [0, 1])
def test_a_rule_that_looks_at_every_page_when_it_is_due_is_that_of_rust(groups: int) -> None:
    shape = {"gc_low": 2, "groups": groups, "gc_policy": "fifo"}
    own = counters(trace=ZIPF, device={"dies": 2}, placement=Dac(), options=shape)
    rust = counters(trace=ZIPF, device={"dies": 2}, options={**shape, "separation": "dac", "classes": 4})
    assert own == rust
    assert own["extra"]["class_gc_0"] > 0 and own["extra"]["class_host_3"] > 0


@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_a_rule_without_a_memory_is_that_of_rust_by_any_chunk(chunk: int) -> None:
    class Chunk(Handles):
        pass

    Chunk.chunk = chunk
    load = "cachelib:space=4096:page_writes=16000"
    sized = {"device": {"dies": 1, "spare_percent": 20}}
    own = counters(trace=load, placement=Chunk(), options={"gc_low": 3}, **sized)
    rust = counters(trace=load, options={"separation": "hint", "hint_handles": 2, "gc_low": 3}, **sized)
    assert own["flash"] == rust["flash"]
    shared = [key for key in own["extra"] if key.startswith("class_")]
    assert {key: own["extra"][key] for key in shared} == {key: rust["extra"][key] for key in shared}


def test_both_at_once() -> None:
    own = counters(placement=Split(), selection=Greedy(), options={"gc_low": 2})
    assert own["flash"] == counters()["flash"]


class Heard(Split):
    """Notes what it is told."""

    chunk = 3

    def __init__(self) -> None:
        self.writes: list[Writes] = []
        self.devices: list[Device] = []

    def begin(self, device: Device) -> None:
        self.devices.append(device)
        self.writes.clear()

    def place(self, writes: Writes) -> Any:
        self.writes.append(writes)
        return np.zeros(len(writes), dtype=np.uint8)


def small(trace: Any, **more: Any) -> None:
    shape = {"dies": 1, "logical_pages": 64, "blocks_per_die": 16, "pages_per_block": 8, "page_bytes": 4096}
    floatgate.simulate("page", trace=trace, device=shape, **more)


REQUESTS = {"op": ["W", "R", "W", "T", "W", "W"], "offset": [0, 4096, 8192, 0, 0, 12288], "bytes": [8192, 4096, 4096, 4096, 4096, 4096]}


def test_what_a_placement_is_told() -> None:
    heard = Heard()
    small({**REQUESTS, "stream": [5, 0, 1, 0, 0, 3]}, placement=heard)
    assert heard.devices[-1] == Device(64, 1, 16, 8)
    assert heard.devices[-1].pages == 128
    chunks = [writes.page.tolist() for writes in heard.writes]
    # Three requests are looked at ahead: W 0 2, R 1 1, W 2 1, then the others.
    assert chunks == [[0, 1, 2], [0, 3]]
    first, second = heard.writes
    assert first.request_pages.tolist() == [2, 2, 1] and first.stream.tolist() == [5, 5, 1]
    assert (first.now, second.now) == (65, 68), "the start state has written 64 pages"
    assert first.last.tolist() == [1, 2, 3] and first.count.tolist() == [1, 1, 1]
    # Page 0 was trimmed in between.
    assert second.last.tolist() == [0, 4] and second.lies_in.tolist() == [-1, 0]
    assert len(second) == 2 and second.page.dtype == np.int64


def test_arrays_stay_good_after_the_run_and_cannot_be_written() -> None:
    heard = Heard()
    small(REQUESTS, placement=heard)
    kept = [writes.page for writes in heard.writes]
    heard.writes.clear()
    gc.collect()
    assert [page.tolist() for page in kept] == [[0, 1, 2], [0, 3]]
    with pytest.raises(ValueError, match="read-only"):
        kept[0][0] = 9


def test_what_is_not_known_ahead_is_asked_alone() -> None:
    heard = Heard()
    small(REQUESTS, placement=heard, run={"ageing": ["replay"]})
    assert [len(writes) for writes in heard.writes] == [3, 2, 3, 2]
    small(REQUESTS, placement=heard, **{"buffer.write_kib": 4})
    assert {len(writes) for writes in heard.writes} == {1}


def test_a_selection_may_choose_for_several_collections() -> None:
    asked = []

    class Order(Selection):
        def select(self, blocks: Blocks) -> Any:
            asked.append(len(blocks))
            assert (blocks.valid < blocks.pages).all() and (np.diff(blocks.taken) > 0).all()
            return blocks.valid.argsort(kind="stable")[:4]

    own = counters(selection=Order())
    assert 0 < len(asked) < own["flash"]["erases"]["gc"] / 2
    assert own["flash"]["programs"]["host"] == counters()["flash"]["programs"]["host"]


def placement(answer: Any, **attributes: Any) -> Placement:
    class Mine(Split):
        def place(self, writes: Writes) -> Any:
            return answer(writes) if callable(answer) else answer

    for key, value in attributes.items():
        setattr(Mine, key, value)
    return Mine()


def selection(answer: Any) -> Selection:
    class Mine(Selection):
        def select(self, blocks: Blocks) -> Any:
            return answer(blocks) if callable(answer) else answer

    return Mine()


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"placement": placement(2)}, "Mine.place returned 2: there are 2 append points, from 0 on"),
        ({"placement": placement(lambda w: np.arange(len(w)) - 1)}, "Mine.place returned -1 at place 0"),
        ({"placement": placement([0, 1])}, r"Mine.place returned 2 append points for \d+ pages"),
        ({"placement": placement(0.5)}, r"Mine.place returned 0.5 \(float64\): whole numbers are wanted"),
        ({"placement": placement(lambda w: np.zeros((len(w), 2), int))}, "in one dimension"),
        ({"placement": placement(None)}, "Mine.place returned nothing"),
        ({"placement": placement([[0], 0, 1])}, "which is no array"),
        ({"placement": placement("hot")}, "whole numbers are wanted"),
        ({"placement": placement(0, classes=65)}, "Mine.classes = 65: a whole number from 1 to 64"),
        ({"placement": placement(0, chunk=0)}, "Mine.chunk = 0"),
        ({"placement": placement(0, class_of_full=2)}, "Mine.class_of_full = 2"),
        ({"selection": selection(lambda b: len(b))}, "blocks to choose from"),
        ({"selection": selection(lambda b: [0, 1, 0])}, "Mine.select returned 0 twice"),
        ({"selection": selection([])}, "Mine.select returned no block"),
        ({"selection": selection(-1)}, "Mine.select returned -1"),
        ({"selection": Selection()}, "Selection needs a method select"),
    ],
)
def test_mistakes_name_the_class_the_method_and_the_value(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(floatgate.PolicyError, match=message):
        counters(**policy)


ANSWERS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(answer=ANSWERS)
def test_whatever_a_policy_returns_the_run_ends_in_a_record_or_a_policy_error(answer: Any) -> None:
    for policy in ({"placement": placement(answer)}, {"selection": selection(answer)}):
        with contextlib.suppress(floatgate.PolicyError):
            assert counters(**policy)["flash"]["programs"]["host"] > 0


def test_nothing_of_a_policy_is_kept_after_the_run() -> None:
    own = placement(0), selection(9**9)
    kept = [weakref.ref(policy) for policy in own]
    counters(placement=own[0])
    with pytest.raises(floatgate.PolicyError):
        counters(selection=own[1])
    del own
    gc.collect()
    assert [policy() for policy in kept] == [None, None]


def test_all_that_a_collection_moves_goes_together_if_that_was_promised() -> None:
    class Mine(Split):
        def place_moved(self, moved: Moved) -> Any:
            return moved.page // 4 % 2

    with pytest.raises(floatgate.PolicyError, match="Mine.place_moved returned . and .: with moves_together"):
        counters(placement=Mine())
    Mine.moves_together = False
    assert counters(placement=Mine())["flash"]["programs"]["gc"] > 0


def test_what_a_policy_raises_comes_out_with_its_traceback() -> None:
    class Mine(Selection):
        def select(self, blocks: Blocks) -> Any:
            return self.weigh(blocks)

        def weigh(self, blocks: Blocks) -> Any:
            raise LookupError("no weight")

    with pytest.raises(floatgate.PolicyError, match="Mine.select raised LookupError: no weight") as raised:
        counters(selection=Mine())
    cause = raised.value.__cause__
    assert isinstance(cause, LookupError)
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)][-2:] == ["select", "weigh"]
    assert counters(selection=Greedy()) == counters(), "and the next run is as ever"


def test_ctrl_c_in_a_policy_is_ctrl_c() -> None:
    def press(blocks: Blocks) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        counters(selection=selection(press))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"placement": Split(), "options": {"separation": "dac"}}, "there is a placement= already"),
        ({"placement": Split(), "options": {"placement": "hint"}}, "only with separation = hint"),
        ({"selection": Greedy(), "options": {"gc_policy": "fifo"}}, "there is a selection= already"),
    ],
)
def test_settings_that_say_the_same_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(floatgate.InputError, match=message):
        counters(**settings)


def test_they_go_with_page_only() -> None:
    with pytest.raises(floatgate.InputError, match="go with the scheme page, not with fast"):
        floatgate.simulate("fast", trace=LOAD, selection=Greedy())
    with pytest.raises(TypeError, match=r"takes Greedy\(\)"):
        floatgate.simulate("page", trace=LOAD, selection=Greedy)  # type: ignore[arg-type]


def test_a_device_with_a_policy_cannot_be_saved(tmp_path: Any) -> None:
    with pytest.raises(floatgate.InputError):
        counters(placement=Split(), save_state=tmp_path / "aged.state")
    assert not list(tmp_path.iterdir())


def test_a_policy_may_run_a_simulation() -> None:
    class Inner(Greedy):
        def begin(self, device: Device) -> None:
            floatgate.simulate("page", trace="sequential:space=4096:requests=100:n=1", selection=Greedy())

    assert counters(selection=Inner()) == counters()

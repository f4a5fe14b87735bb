"""Whole schemes in plain Python: simulated beside those of Rust, put through their tests, and caught when they are broken."""

import functools
import importlib.util
import threading
from pathlib import Path
from typing import Any

import pytest

import floatgate

from .conftest import LOAD

PATH = Path(__file__).parents[2] / "examples" / "python" / "one_log.py"


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("one_log", PATH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.OneLog


OneLog = loaded()


def test_it_is_simulated_beside_those_of_rust() -> None:
    device = {"dies": 2}
    own = floatgate.simulate(OneLog, trace=LOAD, device=device)
    rust = floatgate.simulate("page", trace=LOAD, device=device, options={"streams": "shared"})
    assert own.record["scheme"] == "OneLog"
    assert own.counters["flash"]["programs"]["host"] == rust.counters["flash"]["programs"]["host"]
    assert own.counters["flash"]["programs"]["gc"] > 0
    assert 0.5 < own.summary["write_amplification"] / rust.summary["write_amplification"] < 2.0
    assert own.record["tables"], "the page map"


def test_it_passes_the_tests_of_every_scheme() -> None:
    told: list[floatgate.Tested] = []
    done = floatgate.test_scheme(OneLog, tell=told.append)
    assert told == done
    assert [row.check for row in done][:3] == ["every_shape", "random_devices", "power_cuts"]
    assert all(row.tried > row.refused for row in done)
    assert next(row for row in done if row.check == "power_cuts").tried >= 1700


class ForgetsOnePage(OneLog):  # type: ignore[misc,valid-type]
    def recover(self, flash: floatgate.Flash, full_scan: bool) -> None:
        super().recover(flash, full_scan)
        at, self.map[1] = self.map[1], None
        if at is not None:
            self.valid[self.device.block_of(at)] -= 1


class NeverErases(OneLog):  # type: ignore[misc,valid-type]
    def collect(self, flash: floatgate.Flash, die: int, target: int) -> None:
        victim = min((b for b in self.device.blocks_of(die) if b != target), key=self.valid.__getitem__)
        self.erased[die].append(victim)


class TakesTheWrongPage(OneLog):  # type: ignore[misc,valid-type]
    def read_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
        super().read_page(flash, page ^ (page == 5), slot)


class DoesNotHeedTheEnd(OneLog):  # type: ignore[misc,valid-type]
    def is_cut(self, found: Any, block: int) -> bool:
        return False


class Raises(OneLog):  # type: ignore[misc,valid-type]
    def trim_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
        raise ZeroDivisionError("of mine")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (ForgetsOnePage, "page 1|live"),
        (NeverErases, "a rule of the flash|audit"),
        (TakesTheWrongPage, "reads"),
        (DoesNotHeedTheEnd, "no erased block|refused|recover"),
        (Raises, "Raises.trim_page raised ZeroDivisionError: of mine"),
    ],
)
def test_a_broken_one_is_caught_with_a_line_that_replays_it(broken: Any, message: str, capfd: Any) -> None:
    with pytest.raises(floatgate.TestFailed, match=message) as failed:
        floatgate.test_scheme(broken)
    line = str(failed.value).split("  replay: ")[1].splitlines()[0]
    assert line.startswith("python ")
    with pytest.raises(floatgate.TestFailed):
        floatgate.test_scheme(broken, replay=line)
    floatgate.test_scheme(OneLog, replay=line)
    if broken is Raises:
        cause = failed.value.__cause__
        assert isinstance(cause, floatgate.PolicyError) and isinstance(cause.__cause__, ZeroDivisionError)
    assert "panicked" not in capfd.readouterr().err


def test_options_by_partial() -> None:
    class Optioned(OneLog):  # type: ignore[misc,valid-type]
        def __init__(self, device: floatgate.Device, *, least: int) -> None:
            super().__init__(device)
            if device.blocks_per_die < least:
                raise floatgate.Refused(f"{least} blocks are needed")

    run = floatgate.simulate(functools.partial(Optioned, least=1), trace=LOAD)
    assert run.record["scheme"] == "Optioned"
    with pytest.raises(floatgate.InputError, match="1000000 blocks are needed"):
        floatgate.simulate(functools.partial(Optioned, least=1000000), trace=LOAD)


KEPT: list[Any] = []


def test_a_flash_or_token_that_was_kept_is_over() -> None:
    class Keeps(OneLog):  # type: ignore[misc,valid-type]
        def write_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
            KEPT.append(flash)
            KEPT[0].written(0)

    with pytest.raises(floatgate.PolicyError, match="this flash is over"):
        floatgate.simulate(Keeps, trace=LOAD)
    with pytest.raises(floatgate.PolicyError, match="this flash is over"):
        KEPT[0].erase(0)

    class KeepsTokens(OneLog):  # type: ignore[misc,valid-type]
        token: Any = None

        def read_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
            KeepsTokens.token = flash.absent(slot, KeepsTokens.token)

    with pytest.raises(floatgate.PolicyError, match="this token is over"):
        floatgate.simulate(KeepsTokens, trace={"op": ["R", "R"], "offset": [0, 0], "bytes": [4096, 4096]})


def test_another_thread_cannot_use_the_flash() -> None:
    wrong: list[str] = []

    class Hands(OneLog):  # type: ignore[misc,valid-type]
        def write_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
            def other() -> None:
                try:
                    flash.erase(0)
                except floatgate.PolicyError as error:
                    wrong.append(str(error))

            if not wrong:
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
            super().write_page(flash, page, slot)

    floatgate.simulate(Hands, trace=LOAD)
    assert len(wrong) == 1 and "in its thread" in wrong[0]


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda flash: flash.program(0, 10**9, 0), "no page 1000000000: the flash has"),
        (lambda flash: flash.erase(10**9), "no block 1000000000"),
        (lambda flash: flash.program(0, 0, 0, role="lgo"), "no role 'lgo'|no role \"lgo\""),
        (lambda flash: flash.program(0, 0, 0, spare=bytes(65)), "spare: 65 bytes, at most 64"),
        (lambda flash: flash.preload(0, [0]), "preload is for format only"),
        (lambda flash: flash.program(0, 0, 0), "a rule of the flash"),
        (lambda flash: flash.copy(-1, 0, 0), "OverflowError"),
    ],
)
def test_misuse_of_the_flash_is_told(misuse: Any, message: str) -> None:
    class Mine(OneLog):  # type: ignore[misc,valid-type]
        def write_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
            misuse(flash)

    with pytest.raises(floatgate.PolicyError, match=message):
        floatgate.simulate(Mine, trace=LOAD)


def test_what_makes_no_scheme_is_told() -> None:
    with pytest.raises(floatgate.PolicyError, match="which is no floatgate.Scheme"):
        floatgate.simulate(lambda device: 7, trace=LOAD)  # type: ignore[arg-type,return-value]
    with pytest.raises(floatgate.FloatgateError, match="times = 0"):
        floatgate.test_scheme(OneLog, times=0)


def test_ctrl_c_ends_the_tests() -> None:
    class Presses(OneLog):  # type: ignore[misc,valid-type]
        def write_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        floatgate.test_scheme(Presses)

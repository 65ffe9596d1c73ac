from __future__ import annotations

import io

import pytest
from rich.console import Console

from kafka_dt.cli.progress import Steps


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    out, clock = io.StringIO(), Clock()
    steps = Steps(Console(file=out, markup=False), clock)
    with steps.step("Making events") as step:
        for done in range(10):
            clock.now += 2
            step.tell(done, 10)
        step.now("Writing the page")
        clock.now += 6
        step.tell(3, None)
    steps.note("[done]")
    assert out.getvalue().splitlines() == [
        "Making events: 2 of 10",
        "Making events: 5 of 10",
        "Making events: 8 of 10",
        "Writing the page: 3",
        "[done]",
    ]


def test_a_note_is_written_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Steps().note("token of User:key: [red]refused")
    assert capsys.readouterr().err == "token of User:key: [red]refused\n"


def test_a_step_with_a_total_tells_rate_and_time_left() -> None:
    out, clock = io.StringIO(), Clock()
    with Steps(Console(file=out, markup=False), clock).step("Sealing", 4_000) as step:
        step.tell(1_000, 4_000)
        clock.now += 10
        step.tell(2_000, 4_000)
    assert out.getvalue() == "Sealing: 2,000 of 4,000, 200/s, 10 s left\n"


def test_on_a_terminal_there_is_a_bar() -> None:
    out = io.StringIO()
    steps = Steps(Console(file=out, force_terminal=True, width=80))
    with steps.step("Making events") as step:
        step.tell(3, 60)
        step.now("Writing [the] page")
    assert "3 of 60" in out.getvalue()
    assert "Writing [the] page" in out.getvalue()

"""What follows batches, and what goes on between them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from kafka_dt.client import ConnectionFailed
from kafka_dt.pipeline.watch.keeping import AGAIN, Keeper
from kafka_dt.pipeline.watch.responding import Policy, Responder
from kafka_dt.pipeline.watch.state import KEPT
from tests.unit.pipeline.watch.days import NOON, company, thief


def keeper(folder: Path, now: Callable[[], datetime], responder: Responder | None = None) -> Keeper:
    made = Keeper(path=folder / "watch.json", table="t", now=now, responder=responder, metrics=folder / "cases.prom")
    made.load()
    return made


def test_metrics_say_that_the_watch_lives_and_cases_close_though_no_events_come(tmp_path: Path) -> None:
    now = NOON
    work = keeper(tmp_path, lambda: now)
    work.take([thief()], company(), "s", 1)
    assert work.open_cases == 1
    now += AGAIN
    work.tend()
    metrics = (tmp_path / "cases.prom").read_text()
    assert f"kafka_dt_cases_made_seconds {now.timestamp():.15g}" in metrics
    assert 'kafka_dt_cases{severity="high"} 1' in metrics
    now += KEPT + timedelta(seconds=1)
    work.tend()
    assert work.open_cases == 0
    assert 'kafka_dt_cases{severity="high"} 0' in (tmp_path / "cases.prom").read_text()


def test_a_token_that_a_run_could_not_end_is_ended_by_the_next(tmp_path: Path) -> None:
    ended: list[str] = []

    def end(token_id: str, _owner: str | None) -> bool:
        if not is_up:
            raise ConnectionFailed("node:9092", "refused")
        ended.append(token_id)
        return True

    def responder() -> Responder:
        return Responder(Policy(frozenset({"stolen_token"}), 5), end, tmp_path / "responses.jsonl", lambda: NOON)

    is_up = False
    keeper(tmp_path, lambda: NOON, responder()).take([thief()], company(), "s", 1)
    is_up = True
    work = keeper(tmp_path, lambda: NOON, responder())
    work.take([thief()], company(), "s", 1)  # the batch is in the state
    assert ended == []
    work.tend()
    assert ended == ["t-etl"]

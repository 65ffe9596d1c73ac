from __future__ import annotations

from pathlib import Path

from benchmarks.results import Case, Measurement, Results, ScenarioResults

LOGIN = Case("login", 16)
RUN = {"rounds": 2, "begun": "2026-01-02T03:04:05+00:00"}


def _results(name: str, *measurements: Measurement) -> Results:
    return Results({name: ScenarioResults(RUN, list(measurements))})


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    results = _results(
        "logins",
        Measurement(LOGIN, "broker", 1, {"rate": 10.0}),
        Measurement(Case("a month", events=1_000), "ingest", 1, {"rate": 2.0}),
        Measurement(Case("steady"), "kafka-dt", 1, {"rate": 1.5}, {"rate": [1.0, 2.0]}),
    )
    results.save(tmp_path / "deep" / "results.json")
    assert Results.load(tmp_path / "deep" / "results.json") == results


def test_an_absent_file_holds_nothing(tmp_path: Path) -> None:
    assert Results.load(tmp_path / "none.json") == Results()


def test_six_digits_are_kept(tmp_path: Path) -> None:
    _results("logins", Measurement(LOGIN, "broker", 1, {"rate": 1 / 3})).save(tmp_path / "results.json")
    (loaded,) = Results.load(tmp_path / "results.json").scenarios["logins"].measurements
    assert loaded.values == {"rate": 0.333333}


def test_a_newer_scenario_takes_the_place_of_the_older() -> None:
    old = _results("logins", Measurement(LOGIN, "broker", 1, {"rate": 1.0}))
    old.merge(_results("changes"))
    old.merge(_results("logins", Measurement(LOGIN, "broker", 1, {"rate": 2.0})))
    assert list(old.scenarios) == ["logins", "changes"]
    assert old.scenarios["logins"].by_round(LOGIN, "broker", "rate") == {1: 2.0}


def test_cases_and_subjects_keep_the_order_of_the_turns() -> None:
    other = Case("create", 16)
    scenario = ScenarioResults(
        RUN,
        [
            Measurement(LOGIN, "broker", 1, {}),
            Measurement(LOGIN, "kafka-dt", 1, {}),
            Measurement(other, "kafka-dt", 1, {}),
            Measurement(LOGIN, "broker", 2, {}),
        ],
    )
    assert scenario.cases() == [LOGIN, other]
    assert scenario.subjects(LOGIN) == ["broker", "kafka-dt"]


def test_a_case_is_named_in_words() -> None:
    assert Case("create", 1).label == "create, 1 connection"
    assert Case("login", 16, 100_000).label == "login, 16 connections, 100,000 tokens"
    assert Case("a month", events=1_000).label == "a month, 1,000 events"
    assert Case("own").label == "own"

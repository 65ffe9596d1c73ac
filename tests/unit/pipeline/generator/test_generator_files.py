from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_dt.audit import AuditEvent
from kafka_dt.audit.encoding import encode
from kafka_dt.pipeline.generator import FolderInUse, IncidentKind, Truth, TruthError, generate, parts, write_part
from kafka_dt.pipeline.generator.incidents import plant
from kafka_dt.pipeline.generator.workloads import Workloads
from tests.unit.pipeline.generator.conftest import SMALL, Played

SHORT = replace(SMALL, days=2, events=3_000, incidents=1)
NAME = re.compile(r"audit-kafka-dt-[1-3]-[01]-\d{8}T\d{6}Z-\d+\.jsonl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("generated") / "events"
    generate(SHORT, path)
    return path


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_named_as_a_node_names_them(folder: Path) -> None:
    names = [path.name for path in folder.glob("audit*")]
    assert names
    assert all(map(NAME.fullmatch, names))


def test_a_file_has_whole_lines_of_one_worker(folder: Path) -> None:
    for path in folder.glob("*.jsonl"):
        text = path.read_text(encoding="ascii")
        assert text.endswith("\n")
        nodes = {json.loads(line)["node"] for line in text.splitlines()}
        assert len(nodes) == 1
        assert path.name.startswith(f"audit-{nodes.pop()}-")


def test_files_are_as_old_as_their_last_events(folder: Path) -> None:
    for path in folder.glob("*.jsonl"):
        last = json.loads(path.read_text().splitlines()[-1])
        assert path.stat().st_mtime == pytest.approx(last["time"] / 1000)


def test_made_again_over_what_is_there_they_are_the_same(folder: Path) -> None:
    before = _content(folder)
    told: list[tuple[int, int]] = []
    again = generate(SHORT, folder, told=lambda done, of: told.append((done, of)))
    assert _content(folder) == before
    assert again.written.files == len(before) - 1
    assert again.written.events == sum(content.count(b"\n") for name, content in before.items() if name != "truth.json")
    assert told == [(done, 4) for done in range(5)]


def test_a_folder_with_other_events_is_left_alone(folder: Path) -> None:
    before = _content(folder)
    with pytest.raises(FolderInUse, match="name a folder that is empty"):
        generate(replace(SHORT, seed=8), folder)
    assert _content(folder) == before


def test_a_folder_with_events_of_a_real_node_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "audit-kdt1-0-20260907T000000Z-0.jsonl.open").touch()
    with pytest.raises(FolderInUse):
        generate(SHORT, tmp_path)


def test_a_file_that_is_full_is_followed_by_another(tmp_path: Path) -> None:
    part = parts(SHORT, [])[0]
    (whole, pieces) = (tmp_path / name for name in ("whole", "pieces"))
    for path, size in ((whole, 10**9), (pieces, 20_000)):
        path.mkdir()
        write_part(part, path, size)
    assert len(list(pieces.iterdir())) > len(list(whole.iterdir())) == 3
    assert all(path.stat().st_size <= 20_000 for path in pieces.iterdir())
    lines = {
        path: sorted(line for file in path.iterdir() for line in file.read_bytes().splitlines())
        for path in (whole, pieces)
    }
    assert lines[whole] == lines[pieces]


def test_the_truth_is_read_as_it_was_written(folder: Path) -> None:
    truth = Truth.load(folder / "truth.json")
    assert truth.scenario["seed"] == SHORT.seed
    planted = [each.incident for each in plant(SHORT, Workloads(SHORT))]
    assert list(truth.incidents) == planted
    assert [each.kind for each in truth.of(IncidentKind.UNKNOWN_ID_BURST)] == [IncidentKind.UNKNOWN_ID_BURST]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "scenario": {}, "incidents": [{}]}']
)
def test_what_is_no_truth_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(text)
    with pytest.raises(TruthError, match="does not say what was planted"):
        Truth.load(path)


def test_no_line_is_cut(played: Played) -> None:
    longest: AuditEvent = max(played.events, key=lambda event: len(encode(event)))
    assert len(encode(longest)) < 2_000

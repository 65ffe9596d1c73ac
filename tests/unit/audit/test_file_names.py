"""The names of audit files: written and read back, and in the order in which the files were written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.audit.file_names import FileName, files_in, second

NOW = 1_795_283_056_000  # 2026-11-21T17:44:16Z
NODES = st.text("abz019._-", min_size=1)
NAMES = st.builds(
    FileName,
    NODES,
    st.integers(0, 200),
    st.integers(0, NOW).map(second),
    st.integers(0, 200),
    complete=st.booleans(),
)


@given(NAMES)
def test_a_name_is_read_as_it_was_written(name: FileName) -> None:
    assert FileName.parse(str(name)) == name


@pytest.mark.parametrize(
    "text",
    [
        "audit-kdt1-0-20261121T174416Z-0.jsonl.digest",
        "audit-kdt1-0-20261121T174416Z-0.json",
        "audit-kdt1-0-20261121T174416Z-00.jsonl",
        "audit-kdt1-0-20261121-0.jsonl",
        "audit-kdt1-20261121T174416Z-0.jsonl",
        "my-audit-kdt1-0-20261121T174416Z-0.jsonl",
        "truth.json",
    ],
)
def test_other_files_are_no_audit_files(text: str) -> None:
    assert FileName.parse(text) is None


def test_the_files_of_a_worker_are_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    written = [
        *(FileName("kdt1", 2, second(NOW), number) for number in (0, 1, 9, 10)),
        FileName("kdt1", 2, second(NOW + 1000)),
        FileName("kdt1", 2, second(NOW + 2000), complete=False),
        FileName("kdt1", 10, second(NOW)),
        FileName("kdt2", 0, second(NOW)),
    ]
    for name in sorted(written, key=str):
        (tmp_path / str(name)).touch()
    (tmp_path / "truth.json").touch()
    assert files_in(tmp_path) == written

"""The page of differences has each rule of a cluster without ZooKeeper that the vectors have."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.docs.documents import ROOT, read

PAGE = "docs/differences.md"
VECTORS = sorted((ROOT / "tests" / "vectors" / "kraft").glob("*.json"))


@pytest.mark.parametrize("vectors", VECTORS, ids=lambda path: path.stem)
def test_each_rule_of_the_vectors_has_a_row_and_each_row_a_rule(vectors: Path) -> None:
    section = read(PAGE).partition("## With the tokens of a Kafka 4 cluster\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert sorted(rows) == sorted(json.loads(vectors.read_text()))

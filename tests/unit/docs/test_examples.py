"""The rules of the manual's examples: few blocks are not run, each with its reason, and a page explains all names.

tests/interop/test_manual.py follows the pages.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.docs.documents import ROOT, Block, all_blocks, documents, read
from tests.support.docs.shape import OtherShape, Shape
from tests.support.docs.terminal import NOT_FOLLOWED, NOTES, TYPED, USERS, World

PAGE = "docs/examples.md"
BLOCKS = [block for page in documents() if page not in NOT_FOLLOWED for block in all_blocks(page)]
NOT_RUN = {
    "README.md": 1,
    "docs/audit.md": 1,
    "docs/how-to/alerts.md": 1,
    "docs/how-to/back-up.md": 1,
    "docs/how-to/beside-brokers.md": 2,
    "docs/how-to/certificates.md": 1,
    "docs/how-to/change-keys.md": 1,
    "docs/how-to/containers.md": 8,
    "docs/how-to/gateway.md": 3,
    "docs/how-to/install.md": 4,
    "docs/how-to/jobs-of-users.md": 1,
    "docs/how-to/kubernetes.md": 5,
    "docs/how-to/move-from-brokers.md": 1,
    "docs/how-to/move-to-kafka-4.md": 3,
    "docs/how-to/operate.md": 2,
    "docs/how-to/pipeline-tokens.md": 3,
    "docs/how-to/pipeline.md": 9,
    "docs/how-to/systemd.md": 7,
    "docs/how-to/upgrade.md": 5,
    "docs/how-to/users-and-acls.md": 1,
    "docs/how-to/watch.md": 2,
    "docs/security-kerberos.md": 1,
    "docs/spark.md": 3,
}
"""How many blocks of a page no test of the manual types. A new one needs a reason, and a number here."""


def test_no_more_blocks_are_left_out_than_are_counted_here() -> None:
    assert Counter(block.document for block in BLOCKS if "not run" in block.notes) == NOT_RUN


@pytest.mark.parametrize("block", [block for block in BLOCKS if NOTES & block.notes.keys()], ids=str)
def test_a_reason_is_a_reason_and_the_tests_that_it_names_exist(block: Block) -> None:
    for note in ("not run", "slow", "not printed"):
        reason = block.notes.get(note, "a reason of three words")
        assert len(reason.split()) > 2
        for path in re.findall(r"tests/[\w/.]+", reason):
            assert (ROOT / path).exists()


def test_each_comment_above_a_block_is_one_that_the_terminal_knows() -> None:
    typed = [block for block in BLOCKS if block.language in TYPED]
    # A comment without a value is a mark for another test.
    assert {note for block in typed for note, value in block.notes.items() if value} <= NOTES


def test_the_page_explains_each_name(tmp_path: Path) -> None:
    explained = set(re.findall(r"`([^`]+)`", read(PAGE)))
    names = {
        name for name in World(tmp_path, "127.0.0.1:2181", "127.0.0.1:2181").names if not name.startswith((":", "--"))
    }
    assert {name.replace("/2182", ":2182") for name in names} <= explained
    assert {f"{user}.properties" for user in USERS} <= explained


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("TOKENID    W23eVbJOQheJ-v0f6A8uRg", "TOKENID  kkmtMmZ-RnCHxH7E7cA5Xw"),
        ("EXPIRES  2026-11-22T08:35:38Z", "EXPIRES  2027-01-02T03:04:05Z\n"),
        ("1 token in 0.0 s, 80/s", "1 token in 12.3 s, 5,320/s"),
        ("a\n...\nb", "a\nb"),
        ("a\n...\nb", "a\nx\ny\nb"),
        ("a\n...", "a"),
        ("a\n...", "a\nb\nc"),
        ("at 127.0.0.1:9092 (PLAIN)", "at 127.0.0.1:40123 (PLAIN)"),
        ("one ... line", "one long line"),
    ],
)
def test_what_differs_in_each_run_fits(shown: str, printed: str) -> None:
    Shape(shown).values(printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("OWNER  User:alice", "OWNER  User:bob"),
        ("deleted", "deleted\nand more"),
        ("a\nb", "a"),
        ("EXPIRES  2026-11-22T08:35:38Z", "EXPIRES  -"),
        ("TOKENID  W23eVbJOQheJ-v0f6A8uRg", "TOKENID  short"),
        ("a ... b", "a\nb"),
    ],
)
def test_what_is_another_output_does_not_fit(shown: str, printed: str) -> None:
    with pytest.raises(OtherShape):
        Shape(shown).values(printed)


def test_values_are_those_that_a_reader_takes_along() -> None:
    shape = Shape("HMAC  4oMZ1RP7k3q...\nat 127.0.0.1:9092, in 3 s")
    assert shape.values("HMAC  abcd+/efgh==\nat 127.0.0.1:41, in 4 s") == {
        "4oMZ1RP7k3q...": "abcd+/efgh==",
        "127.0.0.1:9092": "127.0.0.1:41",
    }

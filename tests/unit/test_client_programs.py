"""Where a toolchain is missing, a client program says which; where it is there, the program is what its folder says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.clients.programs import CLIENTS, ClientFailed, Program, ToolchainMissing


@pytest.mark.parametrize(("client", "missing"), [("kafkajs", "node"), ("rdkafka", "cargo")])
def test_a_missing_toolchain_is_named(
    client: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainMissing, match=f"^{missing} is not installed$"):
        CLIENTS[client].build()


def test_a_client_that_fails_says_why() -> None:
    with pytest.raises(ClientFailed, match=r"^no such user: topics$"):
        Program(["/bin/sh", "-c", 'echo "no such user: $1" >&2; exit 1', "client"]).ask("topics", {})


def test_a_client_answers_what_it_is_asked() -> None:
    assert Program(["/bin/sh", "-c", "cat"]).ask("records", {"servers": "a:1"}) == {"servers": "a:1"}

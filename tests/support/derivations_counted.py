"""Which keys something was derived of, in their order: a derivation for a znode is what sealing and opening cost."""

from __future__ import annotations

import pytest

from kafka_dt.tokens import SecretKey
from kafka_dt.zookeeper.sealing.sealed import ITERATIONS


def derivations_counted(monkeypatch: pytest.MonkeyPatch) -> list[SecretKey]:
    """Enter every derivation for a znode in the list that is returned."""
    made: list[SecretKey] = []
    derive = SecretKey.derive

    def counted(key: SecretKey, salt: bytes, iterations: int, length: int) -> bytes:
        if iterations == ITERATIONS:  # else it is a key's id
            made.append(key)
        return derive(key, salt, iterations, length)

    monkeypatch.setattr(SecretKey, "derive", counted)
    return made

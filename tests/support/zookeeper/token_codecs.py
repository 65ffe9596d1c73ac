"""Codecs for tests that write and read token znodes, threads that work when a test says so, and a count of derivations.

A derivation for a znode is what sealing and opening cost.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from kafka_dt.tokens import Keyring, SecretKey
from kafka_dt.zookeeper.sealing.derivations import Derivations
from kafka_dt.zookeeper.sealing.sealed import ITERATIONS
from kafka_dt.zookeeper.sealing.token_codec import TokenCodec

CURRENT, OLDER, FOREIGN = (SecretKey(f"the {name} secret key of the token codec's tests") for name in "abc")
"""Shared, because an id takes some milliseconds."""
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="codec")


def codec_of(
    keyring: Keyring | None = None,
    *,
    seal: bool = False,
    executor: Executor = _THREADS,
    derivations: Derivations | None = None,
) -> TokenCodec:
    return TokenCodec(
        keyring or Keyring(CURRENT),
        seal=seal,
        executor=executor,
        random_bytes=secrets.token_bytes,
        derivations=derivations,
    )


class HeldExecutor(Executor):
    """Runs what it is given when it is told to, so that a test decides what ends before what."""

    def __init__(self) -> None:
        self._held: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._held.append((future, lambda: work(*args, **kwargs)))
        return future

    def __len__(self) -> int:
        return len(self._held)

    async def given(self, count: int = 1) -> None:
        """Wait until there is so much to do."""
        for _ in range(20):
            if len(self) == count:
                return
            await asyncio.sleep(0)
        raise AssertionError(f"{len(self)} pieces of work instead of {count}")

    def release(self) -> None:
        """Run everything that has been given so far."""
        held, self._held = self._held, []
        for future, work in held:
            if future.set_running_or_notify_cancel():
                future.set_result(work())


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

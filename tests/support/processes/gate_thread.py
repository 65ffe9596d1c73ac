"""Gates (`tcp_gate`) in a thread of their own, for tests whose own thread waits, or has an event loop to use.

    gates = GateThread()
    gates.start()
    gate = gates.open("127.0.0.1", port)
    gates.call(gate.hold)
    gates.stop()

Its methods may be called from any thread, and return when it is done.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from tests.support.processes.tcp_gate import TcpGate

ANSWER_S: Final = 10.0

_T = TypeVar("_T")


class GateThread:
    """An event loop in a thread, with gates."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gates", daemon=True)
        self._gates: list[TcpGate] = []

    def start(self) -> None:
        self._thread.start()

    def open(self, host: str, port: int, *, at: tuple[str, int] = ("127.0.0.1", 0), patience_s: float = 0) -> TcpGate:
        """Give a new gate to a port; the other arguments are those of `TcpGate`."""
        gate = TcpGate(host, port, at=at, patience_s=patience_s)
        self._run(gate.__aenter__())
        self._gates.append(gate)
        return gate

    def call(self, function: Callable[[], None]) -> None:
        """Call a method of a gate in its thread."""

        async def call() -> None:
            function()

        self._run(call())

    def stop(self) -> None:
        if self._thread.is_alive():
            for gate in self._gates:
                self._run(gate.__aexit__())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(ANSWER_S)

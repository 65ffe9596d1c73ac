"""What a failed login waits for: `connection.failed.authentication.delay.ms`, so that guessing takes its time.

That something is answered at once cannot be held on a busy machine, that it is not can.

Source: kafka.network.SocketServer (DelayedAuthenticationFailureClose), KIP-306.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from typing import Final

from tests.interop.cases.sasl import GARBAGE, chosen
from tests.support.protocol.conversation import Case, Stage, unrecorded
from tests.support.protocol.raw import METADATA
from tests.support.protocol.wire import Wire

DELAY_S: Final = 0.08
"""A little less than the default of 100 ms, for the clocks of two processes."""


def cases() -> Iterator[Case]:
    failures: dict[str, tuple[Callable[[Stage], Wire], Callable[[Wire], object]]] = {
        "a wrong password": (chosen, lambda wire: wire.authenticate(b"\0alice\0wrong")),
        "a wrong bare password": (bare, lambda wire: wire.send_frame(b"\0alice\0wrong")),
        "an unknown mechanism": (Stage.stranger, lambda wire: wire.handshake("GSSAPI")),
        "a request during a login": (chosen, lambda wire: wire.ask(METADATA, 1, topics=())),
        "a first request that is none": (Stage.stranger, lambda wire: wire.request(METADATA, 1, topics=())),
        "a frame length before login": (Stage.stranger, lambda wire: wire.send(b"\xff\xff\xff\xff")),
        "a frame length during a login": (chosen, lambda wire: wire.send(b"\xff\xff\xff\xff")),
        "an unknown API first": (Stage.stranger, lambda wire: wire.send_frame(struct.pack(">hhih", 9999, 0, 1, -1))),
        "a frame of GSSAPI first": (Stage.stranger, lambda wire: wire.send_frame(GARBAGE)),
        "an empty frame first": (Stage.stranger, lambda wire: wire.send_frame(b"")),
    }
    for what, (connect, fail) in failures.items():
        yield Case(f"{what} is answered and closed later", failing(connect, fail), ["later"])


def bare(stage: Stage) -> Wire:
    return chosen(stage, version=0)


def failing(connect: Callable[[Stage], Wire], fail: Callable[[Wire], object]) -> Callable[[Stage], None]:
    """Measure until the answer, or until the end where there is none."""

    def talk(stage: Stage) -> None:
        wire = connect(stage)
        with unrecorded(wire):
            if fail(wire) is None:
                wire.ends()
        stage.note("later" if time.monotonic() - wire.sent_at >= DELAY_S else "at once")

    return talk


CASES: Final = tuple(cases())

"""New settings for the workers of a node: all of them take them over, or none does.

    orders = Orders(worker.write, worker.kill)     # the supervisor's side, one for each worker
    await orders.prepare(properties)               # raises NotChanged
    await orders.apply()                           # or orders.forget()

    await obey(reader, prepare, answer)            # the worker's side

An order is a line of JSON on the worker's standard input, the answer a line on its standard output that begins with
`ANSWER` and the number of the order, so that an answer that comes too late is not taken for that of the next order.
First every worker checks the settings (`prepare`). When all can use them, each takes them over (`apply`),
which cannot fail.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Final

ANSWER: Final = "settings: "
OK: Final = "ok"
LONGEST_ORDER_BYTES: Final = 16 * 1024 * 1024
PATIENCE_S: Final = 10.0
"""How long a worker may take to answer."""

PREPARE, APPLY, FORGET, NUMBER = "prepare", "apply", "forget", "number"


class NotChanged(Exception):
    """The node goes on with the settings of before; the text says why."""


class Orders:
    """The orders to one worker.

    Args:
        write: sends bytes to it.
        replace: ends it, so that another takes its place.
        patience_s: how long it may take to answer, in seconds.
    """

    def __init__(
        self, write: Callable[[bytes], None], replace: Callable[[], None], patience_s: float = PATIENCE_S
    ) -> None:
        self._write = write
        self.replace: Final = replace
        self._patience_s = patience_s
        self._answer: asyncio.Future[str] | None = None
        self._number = 0

    def answered(self, answer: str) -> None:
        """Take what the worker has answered; an answer to an earlier order is passed over."""
        number, _, said = answer.partition(" ")
        if number == str(self._number):
            self._settle(said)

    def gone(self) -> None:
        """Hear that the worker has ended."""
        self._settle("it has ended")

    async def prepare(self, properties: Mapping[str, str]) -> None:
        """Have the worker check settings.

        Raises:
            NotChanged: it cannot use them.
        """
        await self._order({PREPARE: dict(properties)})

    async def apply(self) -> None:
        """Have the worker take over what it has checked.

        Raises:
            NotChanged: it has ended, or hangs.
        """
        await self._order({APPLY: True})

    def forget(self) -> None:
        """Have the worker forget what it has checked."""
        self._send({FORGET: True})

    async def _order(self, order: Mapping[str, object]) -> None:
        self._answer = asyncio.get_running_loop().create_future()
        self._send(order)
        try:
            answer = await asyncio.wait_for(self._answer, self._patience_s)
        except TimeoutError:
            raise NotChanged(f"it did not answer within {self._patience_s:g} s") from None
        finally:
            self._answer = None
        if answer != OK:
            raise NotChanged(answer)

    def _settle(self, said: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(said)

    def _send(self, order: Mapping[str, object]) -> None:
        self._number += 1
        self._write(json.dumps({NUMBER: self._number, **order}).encode() + b"\n")


async def obey(
    reader: asyncio.StreamReader,
    prepare: Callable[[Mapping[str, str]], Callable[[], None]],
    answer: Callable[[str], None],
) -> None:
    """Follow the orders of a supervisor until it has gone: a worker's side.

    Args:
        reader: of the orders.
        prepare: checks settings and returns what takes them over; raises ValueError with the reason in one line.
        answer: writes a line to the supervisor.
    """
    take_over: Callable[[], None] | None = None
    while line := await reader.readline():
        order = json.loads(line)
        begin = f"{ANSWER}{order[NUMBER]} "
        if PREPARE in order:
            try:
                take_over = prepare(order[PREPARE])
            except ValueError as error:
                answer(f"{begin}{error}")
            else:
                answer(begin + OK)
        elif APPLY in order and take_over is not None:
            take_over()
            take_over = None
            answer(begin + OK)
        else:
            take_over = None

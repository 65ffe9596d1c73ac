"""Sends alerts in a thread of its own, so that no theft waits to be judged while a destination is slow.

    teller = Teller(deliver)
    teller.tell(cases)          # if it is not busy
    teller.not_taken()          # when it is done
    teller.wait(20.0)           # at the end

Limits: one delivery at a time. The thread ends with the process, also in the middle of a delivery.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from kafka_dt.pipeline.cases import Case

    Deliver = Callable[[Sequence[Case]], Collection[str]]
    """Sends alerts of cases that are new; gives the ids of the findings that a destination did not take."""


class Teller:
    """Sends alerts; its methods are for one thread at a time.

    Args:
        deliver: is called in a thread of its own.
    """

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._thread: threading.Thread | None = None
        self._not_taken: Collection[str] = ()
        self._failure: BaseException | None = None

    @property
    def is_busy(self) -> bool:
        """Whether alerts are being sent."""
        return self._thread is not None and self._thread.is_alive()

    def tell(self, cases: Sequence[Case]) -> None:
        """Begin to send alerts of cases; it may not be busy."""
        self._thread = threading.Thread(target=self._send, args=(cases,), name="alerts", daemon=True)
        self._thread.start()

    def not_taken(self) -> Collection[str]:
        """Give the ids of findings of which the last alerts were not taken; it may not be busy.

        Raises what the delivery has raised.
        """
        if self._failure is not None:
            raise self._failure
        return self._not_taken

    def wait(self, timeout_s: float) -> None:
        """Wait until it is not busy, for some seconds at most."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _send(self, cases: Sequence[Case]) -> None:
        try:
            self._not_taken = self._deliver(cases)
        except BaseException as failure:  # noqa: BLE001 - `not_taken` raises it
            self._failure = failure

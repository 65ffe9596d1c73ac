"""The entries of one request that were refused, for the audit: one event for each reason, whatever their number.

    refused = RefusedEntries("acl")
    refused.add(ErrorCode.cluster_authorization_failed, lambda: acl_text(creation, shortened))
    refused.told()                  # the error; acl, the first one; count and entries, if there were several

A text is made only if it is to be shown, so a request of thousands of entries costs no more than counting them.

Source: docs/audit.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from kio.schema.errors import ErrorCode

from kafka_dt.audit.recorder import Facts

SHOWN: Final = 8
"""How many of the refused entries an event shows."""


@dataclass(slots=True)
class _Alike:
    """Entries that were refused for the same reason."""

    count: int = 0
    shown: list[str] = field(default_factory=list)


class RefusedEntries:
    """Gathers the refused entries of one request.

    Args:
        fact: the field of an event that holds one of them.
    """

    def __init__(self, fact: Literal["acl", "user"]) -> None:
        self._fact: Literal["acl", "user"] = fact
        self._by_error: dict[ErrorCode, _Alike] = {}

    def add(self, error: ErrorCode, text: Callable[[], str]) -> None:
        """Count an entry; `text` gives how it is shown, already cut."""
        alike = self._by_error.setdefault(error, _Alike())
        alike.count += 1
        if len(alike.shown) < SHOWN:
            alike.shown.append(text())

    def told(self) -> Iterator[tuple[ErrorCode, Facts]]:
        """Give each error and the facts of its event."""
        for error, alike in self._by_error.items():
            facts = Facts()
            facts[self._fact] = alike.shown[0]
            if alike.count > 1:
                facts["count"], facts["entries"] = alike.count, tuple(alike.shown)
            yield error, facts

"""A finding within a case: the finding, its id, and the words of the sign that found it.

The id is made of what the finding is about, so it is the same in each report, in the stream, and after a restart. A
token has at most one finding of a kind. Something else, such as an address, can have one again and again: there the day
of the first event (UTC) is part of the id.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

_ID_LENGTH: Final = 16
_UNKNOWN: Final = "unknown"
"""The address in a finding where the node saw none."""
_TOKEN: Final = "token"  # noqa: S105 - the name of a type


class Fact(Protocol):
    """One piece of a finding's evidence."""

    @property
    def label(self) -> str:
        """Its name."""

    @property
    def text(self) -> str:
        """Its value."""


class Found(Protocol):
    """What cases need of a finding; the report's `Finding` has it, with the meaning that it has there."""

    @property
    def kind(self) -> str: ...  # noqa: D102 - `Finding` describes them
    @property
    def severity(self) -> str: ...  # noqa: D102
    @property
    def subject_type(self) -> str: ...  # noqa: D102
    @property
    def subject(self) -> str: ...  # noqa: D102
    @property
    def token_id(self) -> str | None: ...  # noqa: D102
    @property
    def owner(self) -> str | None: ...  # noqa: D102
    @property
    def address(self) -> str | None: ...  # noqa: D102
    @property
    def first_seen(self) -> datetime: ...  # noqa: D102
    @property
    def last_seen(self) -> datetime: ...  # noqa: D102
    @property
    def events(self) -> int: ...  # noqa: D102
    @property
    def evidence(self) -> Sequence[Fact]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Sighting:
    """A finding with what its sign says about it."""

    finding: Found
    title: str
    """The sign's name for people."""
    meaning: str
    """What the sign means, in a sentence."""
    responses: tuple[Mapping[str, str], ...] = ()
    """What to do, in order: `why`, and `command` if there is one."""
    ends_token: bool = False
    """Whether it helps to end the token: the sign is about a token that may still live."""

    @property
    def id(self) -> str:
        """The finding's id."""
        return finding_id(self.finding)

    @property
    def address(self) -> str | None:
        """Where it came from, if that is known."""
        return None if self.finding.address == _UNKNOWN else self.finding.address


def finding_id(finding: Found) -> str:
    """Name a finding: 16 hex digits, the same for the same finding wherever it is found."""
    day = "" if finding.subject_type == _TOKEN else f"{finding.first_seen:%Y-%m-%d}"
    about = json.dumps([finding.kind, finding.subject_type, finding.subject, day])
    return hashlib.sha256(about.encode()).hexdigest()[:_ID_LENGTH]

"""Ends tokens that findings are about: `--respond revoke`, off by default.

    responder = Responder(Policy(kinds={"stolen_token"}, at_most=5), revoke, journal, now)
    responder.respond(findings)

A token is ended if the finding about it is of a kind that the operator chose and of severity high, and if fewer than
`at_most` other tokens were ended within the hour before: a rule that goes wrong ends few. A token counts as soon as its
end is requested, whatever comes of it: a node that fails may have ended it. Each decision is a line of JSON in the
journal, written to the disk before and after the request, with the facts that led to it. The journal also tells, after
a restart, which tokens count, and which ends were begun and not done. Decisions of a dry run count in dry runs alone.
The node records the end as an audit event of its own.

A node that is away is asked once, then again by `again`: a connection can take its time to fail.

Source: KIP-48 (ExpireDelegationToken)
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

from kafka_dt.client import TokenClient, TokenClientError, TokenNotFound
from kafka_dt.client.errors import RequestRefused, StorageNotReached
from kafka_dt.files import naming
from kafka_dt.pipeline.cases import finding_id
from kafka_dt.pipeline.report.signs.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from kafka_dt.client import ClientConfig
    from kafka_dt.pipeline.report.signs.finding import Finding

    Revoke = Callable[[str, str | None, Callable[[], None]], bool]
    """Ends a token, by its id and its owner; False if there is no such token. Calls the third argument just before it
    sends the request that ends it. Raises TokenClientError."""

HOUR: Final = timedelta(hours=1)


class Outcome(StrEnum):
    """What came of a finding."""

    REVOKING = "revoking"
    """The request is about to be sent."""
    REVOKED = "revoked"
    GONE = "gone"
    """There is no such token any more, or the login of the watch may not see it."""
    FAILED = "failed"
    """The server did not do it or did not say so; the watch asks again every few seconds."""
    HELD_BACK = "held_back"
    """As many tokens were ended within the hour as may be: an operator decides."""
    WOULD_REVOKE = "would_revoke"
    """A dry run."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be ended without an operator."""

    kinds: frozenset[str]
    """Of findings about tokens."""
    at_most: int
    """Tokens in an hour."""
    dry_run: bool = False


class Responder:
    """Ends tokens.

    Args:
        policy: what may be ended.
        revoke: ends a token.
        journal: the file of decisions.
        now: the clock, in UTC.
        told: is called with the line of each decision.
    """

    def __init__(
        self,
        policy: Policy,
        revoke: Revoke,
        journal: Path,
        now: Callable[[], datetime],
        told: Callable[[dict[str, Any]], None] = lambda _line: None,
    ) -> None:
        self._policy = policy
        self._revoke = revoke
        self._journal = journal
        self._now = now
        self._told = told
        past = _Past.of(journal, dry_run=policy.dry_run)
        self._decided, self._sent, self._begun = past.decided, past.sent, past.begun
        self._held: set[str] = set()
        self._failed: dict[str, Finding] = {}
        """The token that was asked for last is the last one."""
        self._away = ""
        """Why the node was not reached; empty while it answers."""
        self.outcomes: dict[str, int] = {}
        """Outcome -> how often, in this run."""

    def respond(self, findings: Iterable[Finding]) -> None:
        """Decide on findings, each token once."""
        for token_id, finding in self._about_tokens(findings):
            if token_id not in self._decided:
                self._end(finding, token_id)

    @property
    def failing(self) -> int:
        """How many tokens are to be ended and could not be."""
        return len(self._failed)

    def resume(self, findings: Iterable[Finding]) -> None:
        """Let `again` ask for the tokens whose end an earlier run has begun and not done.

        Args:
            findings: those of the earlier run.
        """
        if not self._policy.dry_run:
            self._failed |= {id_: finding for id_, finding in self._about_tokens(findings) if id_ in self._begun}

    def again(self) -> None:
        """Ask again for what failed."""
        self._away = ""
        for token_id, finding in list(self._failed.items()):
            self._end(finding, token_id)
            if self._away:
                break

    def _about_tokens(self, findings: Iterable[Finding]) -> Iterator[tuple[str, Finding]]:
        """Give the findings for which tokens may be ended, with the ids of these."""
        for finding in findings:
            is_allowed = finding.kind in self._policy.kinds and finding.severity is Severity.HIGH
            if is_allowed and finding.token_id is not None:
                yield finding.token_id, finding

    def _end(self, finding: Finding, token_id: str) -> None:
        hour_ago = self._now() - HOUR
        self._sent = {name: at for name, at in self._sent.items() if at > hour_ago}
        if len(self._sent.keys() - {token_id}) >= self._policy.at_most:
            self._failed.pop(token_id, None)  # also of one that was asked for, an operator decides
            if token_id not in self._held:
                self._held.add(token_id)
                self._note(finding, Outcome.HELD_BACK, f"{self._policy.at_most} tokens were ended within the hour")
            return
        if self._policy.dry_run:
            self._count(finding, token_id, Outcome.WOULD_REVOKE)
            self._decided.add(token_id)
            return
        if self._away:
            self._fail(finding, token_id, self._away)
            return
        try:
            ended = self._revoke(token_id, finding.owner, lambda: self._count(finding, token_id, Outcome.REVOKING))
        except TokenClientError as error:
            if isinstance(error, StorageNotReached) or not isinstance(error, RequestRefused):
                self._away = str(error)
            self._fail(finding, token_id, str(error))
            return
        self._failed.pop(token_id, None)
        if ended:
            self._sent[token_id] = self._now()
            self._decided.add(token_id)
        # Of one that has gone a later finding asks again.
        self._note(finding, Outcome.REVOKED if ended else Outcome.GONE)

    def _count(self, finding: Finding, token_id: str, outcome: Outcome) -> None:
        """Note that a token is about to be ended; it counts from now on."""
        self._sent[token_id] = self._now()
        self._note(finding, outcome)

    def _fail(self, finding: Finding, token_id: str, reason: str) -> None:
        """Let `again` ask for it, after all that failed before; the journal says so once."""
        if self._failed.pop(token_id, None) is None:
            self._note(finding, Outcome.FAILED, reason)
        self._failed[token_id] = finding

    def _note(self, finding: Finding, outcome: Outcome, reason: str = "") -> None:
        """Write a line to the disk."""
        line = {
            "time": self._now().isoformat(),
            "outcome": outcome.value,
            **({"reason": reason} if reason else {}),
            "token_id": finding.token_id,
            "owner": finding.owner,
            "finding": finding_id(finding),
            "kind": finding.kind,
            "first_seen": finding.first_seen.isoformat(),
            "evidence": {each.label: each.text for each in finding.evidence},
        }
        with naming(self._journal), open(self._journal, "a", encoding="ascii", opener=_for_the_owner) as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.outcomes[outcome.value] = self.outcomes.get(outcome.value, 0) + 1
        self._told(line)


def _for_the_owner(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # one of an earlier release was for all
    return descriptor


def revoke_over_kafka(config: ClientConfig) -> Revoke:
    """Make what ends a token at a node, as a user that may describe and expire it."""

    async def end(token_id: str, owner: str | None, sending: Callable[[], None]) -> bool:
        async with TokenClient(config) as client:
            shown = await client.describe(None if owner is None else [owner])
            token = next((each for each in shown if each.token_id == token_id), None)
            if token is None:
                return False
            sending()
            try:
                await client.expire(token.hmac)
            except TokenNotFound:
                return False
            return True

    return lambda token_id, owner, sending: asyncio.run(end(token_id, owner, sending))


@dataclass(slots=True)
class _Past:
    """What earlier runs have decided."""

    decided: set[str] = field(default_factory=set)
    """Ids of tokens that need nothing more."""
    sent: dict[str, datetime] = field(default_factory=dict)
    """Id of a token -> when its end was requested or done last."""
    begun: set[str] = field(default_factory=set)
    """Ids of tokens whose end was begun and not done."""

    @classmethod
    def of(cls, journal: Path, *, dry_run: bool) -> Self:
        """Read a journal."""
        past = cls()
        try:
            content = journal.read_text(encoding="ascii")
        except FileNotFoundError:
            return past
        if content and not content.endswith("\n"):
            with naming(journal), journal.open("a", encoding="ascii") as file:
                file.write("\n")  # so that the next line is one
        for text in content.splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue  # the machine stopped while it was written
            outcome, token_id, at = line["outcome"], line["token_id"], datetime.fromisoformat(line["time"])
            if outcome in {Outcome.REVOKING, Outcome.REVOKED} or (dry_run and outcome == Outcome.WOULD_REVOKE):
                past.sent[token_id] = at
            if outcome == Outcome.REVOKED or (dry_run and outcome == Outcome.WOULD_REVOKE):
                past.decided.add(token_id)
            if outcome in {Outcome.REVOKING, Outcome.FAILED}:
                past.begun.add(token_id)
            if outcome in {Outcome.REVOKED, Outcome.GONE, Outcome.HELD_BACK}:
                past.begun.discard(token_id)
        return past

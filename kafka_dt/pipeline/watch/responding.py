"""Ends tokens that findings are about: `--respond revoke`, off by default.

    responder = Responder(Policy(kinds={"stolen_token"}, at_most=5), revoke, journal, now)
    responder.respond(findings)

A token is ended if the finding about it is of a kind that the operator chose and of severity high, and if fewer than
`at_most` tokens were ended within the hour before: a rule that goes wrong ends few. Each decision is a line of JSON in
the journal, written to the disk before and after the request, with the facts that led to it. The journal also tells,
after a restart, how many tokens were ended within the hour. The node records the end as an audit event of its own.

Source: KIP-48 (ExpireDelegationToken)
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.client import TokenClient, TokenClientError, TokenNotFound
from kafka_dt.pipeline.cases import finding_id
from kafka_dt.pipeline.report.signs.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from kafka_dt.client import ClientConfig
    from kafka_dt.pipeline.report.signs.finding import Finding

    Revoke = Callable[[str, str | None], bool]
    """Ends a token, by its id and its owner; False if there is no such token. Raises TokenClientError."""

HOUR: Final = timedelta(hours=1)


class Outcome(StrEnum):
    """What came of a finding."""

    REVOKING = "revoking"
    """The request is about to be sent."""
    REVOKED = "revoked"
    GONE = "gone"
    """There is no such token any more."""
    FAILED = "failed"
    """The server did not do it; the watch asks again every few seconds."""
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
        self._decided, self._ended = _read(journal)
        self._held: set[str] = set()
        self._failed: dict[str, Finding] = {}
        self.outcomes: dict[str, int] = {}
        """Outcome -> how often, in this run."""

    def respond(self, findings: Iterable[Finding]) -> None:
        """Decide on findings, each token once."""
        for finding in findings:
            token_id = finding.token_id
            if token_id is None or finding.kind not in self._policy.kinds or finding.severity is not Severity.HIGH:
                continue
            if token_id not in self._decided:
                self._end(finding, token_id)

    def again(self) -> None:
        """Ask again for what failed."""
        for token_id, finding in list(self._failed.items()):
            self._end(finding, token_id)

    def _end(self, finding: Finding, token_id: str) -> None:
        now = self._now()
        self._ended = [each for each in self._ended if now - each < HOUR]
        if len(self._ended) >= self._policy.at_most:
            if token_id not in self._held:
                self._held.add(token_id)
                self._note(finding, Outcome.HELD_BACK, f"{self._policy.at_most} tokens were ended within the hour")
            return
        self._ended.append(now)
        if self._policy.dry_run:
            self._note(finding, Outcome.WOULD_REVOKE)
            self._decided.add(token_id)
            return
        if token_id not in self._failed:
            self._note(finding, Outcome.REVOKING)
        try:
            ended = self._revoke(token_id, finding.owner)
        except TokenClientError as error:
            if token_id not in self._failed:
                self._note(finding, Outcome.FAILED, str(error))
            self._failed[token_id] = finding
            self._ended.remove(now)
            return
        self._failed.pop(token_id, None)
        self._decided.add(token_id)
        self._note(finding, Outcome.REVOKED if ended else Outcome.GONE)

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
        with self._journal.open("a", encoding="ascii") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.outcomes[outcome.value] = self.outcomes.get(outcome.value, 0) + 1
        self._told(line)


def revoke_over_kafka(config: ClientConfig) -> Revoke:
    """Make what ends a token at a node, as a user that may describe and expire it."""

    async def end(token_id: str, owner: str | None) -> bool:
        async with TokenClient(config) as client:
            shown = await client.describe(None if owner is None else [owner])
            token = next((each for each in shown if each.token_id == token_id), None)
            if token is None:
                return False
            try:
                await client.expire(token.hmac)
            except TokenNotFound:
                return False
            return True

    return lambda token_id, owner: asyncio.run(end(token_id, owner))


def _read(journal: Path) -> tuple[set[str], list[datetime]]:
    """Read which tokens were decided on, and when tokens were ended."""
    decided: set[str] = set()
    ended: list[datetime] = []
    try:
        lines = journal.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return decided, ended
    for text in lines:
        try:
            line = json.loads(text)
        except ValueError:
            continue  # the machine stopped while it was written
        if line["outcome"] in {Outcome.REVOKED, Outcome.GONE, Outcome.WOULD_REVOKE}:
            decided.add(line["token_id"])
        if line["outcome"] in {Outcome.REVOKING, Outcome.WOULD_REVOKE}:
            ended.append(datetime.fromisoformat(line["time"]))
    return decided, ended

"""A cluster as its audit events show it: nodes, tokens, and who may do what.

    session = cluster.login(client, "User:etl", "SCRAM-SHA-512")
    token = cluster.create(session, "User:etl", renewers=("User:yarn",))
    cluster.token_login(client, token)

Each call is one event, with the outcome that a node would give it: a login with a token that has ended is refused, and
a renewal by a stranger too. So honest clients and thieves meet the same rules, and no process writes an event by hand.

Source: docs/audit.md; KIP-48, KIP-373.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Final

from benchmarks.detection.company.software import NAMELESS, Software
from benchmarks.detection.company.timeline import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Process, Timeline
from benchmarks.detection.stories import Story
from kafka_dt.audit import AuditEvent, EventType, Outcome

Line = Callable[[str, AuditEvent], None]
"""Takes an event and the name of the worker that wrote it."""

PURGE_MS: Final = HOUR_MS
"""How often nodes remove expired tokens."""
PASSWORDS: Final = "SCRAM-SHA-512"
TOKENS: Final = "SCRAM-SHA-256"


@dataclass(frozen=True, slots=True)
class Client:
    """A program at an address."""

    address: str
    software: Software = NAMELESS
    client_id: str | None = None
    story: Story | None = None
    """What its events belong to, if they are more than daily work."""


@dataclass(slots=True)
class Token:
    """A delegation token."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    expiry_ms: int
    max_ms: int
    key_id: str
    removed: bool = False

    def facts(self) -> dict[str, Any]:
        """Give what an event about it says."""
        return {
            "token_id": self.token_id,
            "owner": self.owner,
            "requester": self.requester,
            "renewers": self.renewers,
            "issue_time": self.issue_ms,
            "expiry_time": self.expiry_ms,
            "max_time": self.max_ms,
            "key_id": self.key_id,
        }


@dataclass(slots=True)
class Worker:
    """A process of a node, with the clock of its machine."""

    name: str
    skew_ms: int
    instance: str = ""
    events: count[int] = field(default_factory=count)
    connections: count[int] = field(default_factory=count)


@dataclass(frozen=True, slots=True)
class Session:
    """A connection that has logged in."""

    client: Client
    worker: Worker
    origin: Mapping[str, Any]

    @property
    def principal(self) -> str:
        """The principal that logged in."""
        return str(self.origin["principal"])


class Cluster:
    """The nodes and tokens of a company.

    Args:
        timeline: says the time.
        rng: draws ids and ports.
        write: takes each event.
        listener: the name of the nodes' listener.
    """

    def __init__(self, timeline: Timeline, rng: Random, write: Line, listener: str) -> None:
        self.timeline = timeline
        self.tokens: dict[str, Token] = {}
        self.by_owner: dict[str, list[Token]] = {}
        self.super_users: set[str] = set()
        self.may_create: set[tuple[str, str]] = set()
        """Requesters, and the owners for which they may create tokens."""
        self.keys: tuple[str, ...] = (self._hex(rng, 8),)
        self.expiry_ms = DAY_MS
        self.max_life_ms = 7 * DAY_MS
        self._rng = rng
        self._write = write
        self._listener = listener
        nodes, workers = rng.randint(2, 5), rng.randint(1, 3)
        slow = rng.randrange(nodes) if rng.random() < 0.3 else None
        self.workers = [
            Worker(f"dt{node}-{worker}", self._skew(rng, slow=node == slow), self._hex(rng, 8))
            for node in range(nodes)
            for worker in range(workers)
        ]
        timeline.start(self._purge())

    def login(self, client: Client, principal: str | None, mechanism: str, refused: str | None = None) -> Session:
        """Log in without a token; `refused` is the reason for which a node refuses it."""
        worker, origin = self._connect(client, principal, mechanism)
        if refused is None:
            origin["by_token"] = False
        self._record(worker, EventType.LOGIN, client.story, origin, reason=refused)
        return Session(client, worker, origin)

    def token_login(self, client: Client, token: Token) -> Session | None:
        """Log in with a token and its HMAC."""
        worker, origin = self._connect(client, None, TOKENS)
        return self._token_login(client, worker, origin, token)

    def login_again(self, session: Session, token: Token) -> Session | None:
        """Log in on the same connection (KIP-368)."""
        origin = dict(session.origin) | {"principal": None, "by_token": None, "session_token_id": None}
        return self._token_login(session.client, session.worker, origin, token)

    def guess(self, client: Client, token_id: str, token: Token | None = None) -> None:
        """Log in with a token id and a wrong HMAC; `token` is the one that has the id, if there is one."""
        worker, origin = self._connect(client, None, TOKENS)
        facts = {"token_id": token_id}
        if token is not None and not token.removed:
            origin["principal"] = token.owner
            facts |= {"owner": token.owner, "requester": token.requester}
            self._record(worker, EventType.LOGIN, client.story, origin, reason="wrong_credentials", **facts)
        else:
            self._record(worker, EventType.LOGIN, client.story, origin, reason="unknown_token", **facts)

    def create(
        self, session: Session, owner: str, renewers: tuple[str, ...] = (), life_ms: int | None = None
    ) -> Token | None:
        """Create a token; another's only with the right to."""
        who = session.principal
        facts = {"owner": owner, "requester": who, "renewers": renewers}
        if owner != who and (who, owner) not in self.may_create and who not in self.super_users:
            reason = "DELEGATION_TOKEN_AUTHORIZATION_FAILED"
            self._record(session.worker, EventType.TOKEN_CREATED, session.client.story, session.origin, reason, **facts)
            return None
        now_ms = self.timeline.now_ms
        max_ms = now_ms + min(life_ms or self.max_life_ms, self.max_life_ms)
        expiry_ms = min(now_ms + self.expiry_ms, max_ms)
        token = self._keep(Token(self.unknown_id(), owner, who, renewers, now_ms, expiry_ms, max_ms, self.keys[0]))
        self._record(session.worker, EventType.TOKEN_CREATED, session.client.story, session.origin, **token.facts())
        return token

    def token_from_before(self, owner: str, requester: str, renewers: tuple[str, ...]) -> Token:
        """Give a token that was created before the first event of the month."""
        issue_ms = self.timeline.now_ms - int(self._rng.uniform(0, 0.6) * self.max_life_ms)
        expiry_ms = self.timeline.now_ms + int(self._rng.uniform(0.3, 1) * self.expiry_ms)
        max_ms = issue_ms + self.max_life_ms
        return self._keep(
            Token(self.unknown_id(), owner, requester, renewers, issue_ms, min(expiry_ms, max_ms), max_ms, self.keys[0])
        )

    def renew(self, session: Session, token: Token) -> bool:
        """Renew a token for the usual period."""
        reason = self._refusal(session, token)
        if reason is None:
            token.expiry_ms = min(self.timeline.now_ms + self.expiry_ms, token.max_ms)
        self._change(session, EventType.TOKEN_RENEWED, token, reason)
        return reason is None

    def expire(self, session: Session, token: Token) -> bool:
        """End a token at once."""
        reason = self._refusal(session, token, super_users=True)
        if reason is None:
            token.expiry_ms = self.timeline.now_ms
        self._change(session, EventType.TOKEN_EXPIRED, token, reason)
        if reason is None:
            self._forget(token)
        return reason is None

    def describe(self, session: Session, number: int) -> None:
        """Describe a number of tokens."""
        client = session.client
        self._record(session.worker, EventType.TOKENS_DESCRIBED, client.story, session.origin, count=number)

    def allow_create(self, session: Session, requester: str, owner: str) -> None:
        """Create the ACL that lets a principal create tokens for another (KIP-373)."""
        acl = f"ALLOW CreateTokens of LITERAL User:'{owner}' to {requester} from *"
        reason = None if session.principal in self.super_users else "CLUSTER_AUTHORIZATION_FAILED"
        self._record(session.worker, EventType.ACL_CREATED, session.client.story, session.origin, reason, acl=acl)
        if reason is None:
            self.may_create.add((requester, owner))

    def change_acl(self, session: Session, acl: str, *, deleted: bool = False) -> None:
        """Create or delete an ACL that has nothing to do with tokens."""
        kind = EventType.ACL_DELETED if deleted else EventType.ACL_CREATED
        self._record(session.worker, kind, session.client.story, session.origin, acl=acl)

    def change_user(self, session: Session, user: str) -> None:
        """Set the SCRAM password of a user."""
        client = session.client
        self._record(session.worker, EventType.SCRAM_USER_CHANGED, client.story, session.origin, user=user)

    def rotate_key(self, story: Story | None) -> None:
        """Let all workers read a new secret key."""
        self.keys = (self._hex(self._rng, 8), *self.keys[:1])
        for worker in self.workers:
            self._record(worker, EventType.KEYS_CHANGED, story, {}, keys=self.keys)

    def restart(self, node: str) -> None:
        """Start the workers of a node again, with new names for connections and events."""
        for worker in self.workers:
            if worker.name.rpartition("-")[0] == node:
                worker.instance, worker.events, worker.connections = self._hex(self._rng, 8), count(), count()

    def live(self, owner: str) -> list[Token]:
        """Give the tokens of an owner that have not expired, the oldest first."""
        return [each for each in self.by_owner.get(owner, ()) if each.expiry_ms > self.timeline.now_ms]

    def unknown_id(self) -> str:
        """Draw an id that no token has."""
        return base64.urlsafe_b64encode(self._rng.randbytes(16)).decode().rstrip("=")

    def _connect(self, client: Client, principal: str | None, mechanism: str) -> tuple[Worker, dict[str, Any]]:
        worker = self._rng.choice(self.workers)
        origin: dict[str, Any] = {
            "listener": self._listener,
            "mechanism": mechanism,
            "principal": principal,
            "client_id": client.client_id,
            "client_software": client.software.name,
            "client_software_version": client.software.version,
            "client_address": client.address,
            "client_port": self._rng.randint(32_768, 60_999),
            "connection": f"{worker.instance}-c{next(worker.connections)}",
        }
        return worker, origin

    def _token_login(self, client: Client, worker: Worker, origin: dict[str, Any], token: Token) -> Session | None:
        ended = token.expiry_ms <= self.timeline.now_ms
        if token.removed:
            self._record(worker, EventType.LOGIN, client.story, origin, "unknown_token", token_id=token.token_id)
            return None
        origin["principal"] = token.owner
        facts = {"token_id": token.token_id, "owner": token.owner, "requester": token.requester}
        if ended:
            self._record(worker, EventType.LOGIN, client.story, origin, "expired_token", **facts)
            return None
        origin |= {"by_token": True, "session_token_id": token.token_id}
        self._record(worker, EventType.LOGIN, client.story, origin, **facts)
        return Session(client, worker, origin)

    def _refusal(self, session: Session, token: Token, *, super_users: bool = False) -> str | None:
        """Say why a principal may not renew or expire a token."""
        if session.origin.get("by_token"):
            return "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
        if token.removed:
            return "DELEGATION_TOKEN_NOT_FOUND"
        if session.principal not in {token.owner, token.requester, *token.renewers} and not (
            super_users and session.principal in self.super_users
        ):
            return "DELEGATION_TOKEN_OWNER_MISMATCH"
        return "DELEGATION_TOKEN_EXPIRED" if token.expiry_ms <= self.timeline.now_ms else None

    def _change(self, session: Session, kind: EventType, token: Token, reason: str | None) -> None:
        facts = {} if reason == "DELEGATION_TOKEN_NOT_FOUND" else token.facts()
        self._record(session.worker, kind, session.client.story, session.origin, reason, **facts)

    def _record(
        self,
        worker: Worker,
        kind: EventType,
        story: Story | None,
        origin: Mapping[str, Any],
        reason: str | None = None,
        **facts: Any,
    ) -> None:
        event = AuditEvent(
            id=f"{worker.instance}-{next(worker.events)}",
            time=self.timeline.now_ms + worker.skew_ms,
            node=worker.name,
            type=kind,
            outcome=Outcome.OK if reason is None else Outcome.REFUSED,
            reason=reason,
            **origin,
            **facts,
        )
        self._write(worker.name, event)
        if story is not None:
            story.saw(event)

    def _purge(self) -> Process:
        """Remove expired tokens."""
        while True:
            yield self.timeline.now_ms + PURGE_MS
            for token in [each for each in self.tokens.values() if each.expiry_ms <= self.timeline.now_ms]:
                self._forget(token)
                self._record(self._rng.choice(self.workers), EventType.TOKEN_REMOVED, None, {}, **token.facts())

    def _keep(self, token: Token) -> Token:
        self.tokens[token.token_id] = token
        self.by_owner.setdefault(token.owner, []).append(token)
        return token

    def _forget(self, token: Token) -> None:
        token.removed = True
        del self.tokens[token.token_id]
        self.by_owner[token.owner].remove(token)

    @staticmethod
    def _hex(rng: Random, number: int) -> str:
        return rng.randbytes(number).hex()

    @staticmethod
    def _skew(rng: Random, *, slow: bool) -> int:
        """Draw by how much a clock is wrong: milliseconds, or minutes if no program corrects it."""
        return rng.randint(-4 * MINUTE_MS, 4 * MINUTE_MS) if slow else int(rng.gauss(0, SECOND_MS / 5))

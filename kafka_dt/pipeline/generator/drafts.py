"""Events as a node would make them, except their ids, which only the node knows.

A `Draft` is an event that has still to be put in order with the others of its worker; `Desk` makes drafts of logins
and changes, for one owner's day. Only this module decides the fields of each kind of event, after
`kafka_dt/server/audited/connection.py` and `kafka_dt/server/audited/requests.py`.

A draft of a login shares all but three fields with the others of its process: there are millions of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from kafka_dt.audit import EventType, Outcome, RefusalReason
from kafka_dt.pipeline.generator.lives import port
from kafka_dt.pipeline.generator.scenario import HOUR_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kafka_dt.pipeline.generator.clients import Place, Software
    from kafka_dt.pipeline.generator.lives import Account, TokenLife, TokenSession
    from kafka_dt.pipeline.generator.owners import Owner
    from kafka_dt.pipeline.generator.scenario import Scenario

_LOGIN_MS: Final = 40
"""From a login to the request that it was made for."""

Fields = dict[str, Any]


class Draft(NamedTuple):
    """An event without id."""

    time_ms: int
    node: int
    """Which one has it."""
    shared: Mapping[str, Any]
    """Fields that other drafts have as well: never changed."""
    connection: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """The ids of a scenario's secret keys; in its middle the second takes the place of the first."""

    first: str
    second: str
    change_ms: int

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """Draw them."""
        chance = scenario.chance("keys")
        change_ms = scenario.begin_ms(scenario.days // 2) + 11 * HOUR_MS
        return cls(f"{chance.getrandbits(32):08x}", f"{chance.getrandbits(32):08x}", change_ms)

    def at(self, instant_ms: int) -> str:
        """Say which key a token is made with."""
        return self.first if instant_ms < self.change_ms else self.second


class Desk:
    """Makes drafts; its names give it random numbers of its own, so no two desks name connections alike."""

    def __init__(self, scenario: Scenario, *names: object) -> None:
        self.chance = scenario.chance("desk", *names)
        self.nodes = scenario.nodes
        self._keys = Keys.of(scenario)
        self._name = f"{self.chance.getrandbits(48):012x}"
        self._connections = 0

    def login(self, time_ms: int, shared: Mapping[str, Any], node: int | None = None) -> Draft:
        """Log in on a new connection; the node is drawn unless it is said."""
        where = self._any_node() if node is None else node
        return Draft(time_ms, where, shared, self._new_connection(), port(self.chance))

    def acts(self, who: Account, time_ms: int, facts: Mapping[str, Any]) -> Iterator[Draft]:
        """Have an account log in without a token and make a request, which is the event that `facts` is about."""
        node, connection, number = self._any_node(), self._new_connection(), port(self.chance)
        origin = _origin(who.place, who.client_id, who.software, who.mechanism)
        origin |= {"principal": who.principal, "by_token": False}
        before_ms = time_ms - _LOGIN_MS - self.chance.randrange(_LOGIN_MS)
        yield Draft(before_ms, node, {"type": EventType.LOGIN, "outcome": Outcome.OK, **origin}, connection, number)
        yield Draft(time_ms, node, {"outcome": Outcome.OK, **origin, **facts}, connection, number)

    def token_acts(self, kind: EventType, owner: Owner, life: TokenLife, who: Account, time_ms: int) -> Iterator[Draft]:
        """Have an account create, renew or end a token."""
        return self.acts(who, time_ms, {"type": kind, **self._token(owner, life, time_ms)})

    def removal(self, owner: Owner, life: TokenLife, time_ms: int) -> Draft:
        """Remove a token by its age, which a node does by itself."""
        facts = {"type": EventType.TOKEN_REMOVED, "outcome": Outcome.OK, **self._token(owner, life, time_ms)}
        return Draft(time_ms, self._any_node(), facts)

    def _any_node(self) -> int:
        return self.chance.randrange(self.nodes)

    def _new_connection(self) -> str:
        self._connections += 1
        return f"{self._name}-c{self._connections}"

    def _token(self, owner: Owner, life: TokenLife, time_ms: int) -> Fields:
        ended = life.cancelled is not None and time_ms >= life.cancelled.at_ms
        return {
            "token_id": life.token_id,
            "owner": owner.principal,
            "requester": life.requester.principal,
            "renewers": life.renewers,
            "issue_time": life.issued_ms,
            "expiry_time": time_ms if ended else life.expiry_ms(time_ms),
            "max_time": life.max_ms,
            "key_id": self._keys.at(life.issued_ms),
        }


def token_login(owner: Owner, life: TokenLife, session: TokenSession) -> Fields:
    """Give the fields of a process' login with its token."""
    return {
        "type": EventType.LOGIN,
        "outcome": Outcome.OK,
        **_origin(session.place, session.client_id, session.software, owner.mechanism),
        "principal": owner.principal,
        "by_token": True,
        "session_token_id": life.token_id,
        "token_id": life.token_id,
        "owner": owner.principal,
        "requester": life.requester.principal,
    }


def refused(login: Mapping[str, Any], reason: RefusalReason) -> Fields:
    """Give the fields of the same login, refused."""
    told = {**login, "outcome": Outcome.REFUSED, "reason": reason}
    # The client proved nothing, and the node does not know the owner of a token that is gone.
    unknown = ("owner", "requester", "principal") if reason is RefusalReason.UNKNOWN_TOKEN else ()
    for name in ("by_token", "session_token_id", *unknown):
        told.pop(name, None)
    return told


def unknown_id(place: Place, software: Software, mechanism: str, token_id: str) -> Fields:
    """Give the fields of a login with an id that no token has."""
    return {
        "type": EventType.LOGIN,
        "outcome": Outcome.REFUSED,
        "reason": RefusalReason.UNKNOWN_TOKEN,
        **_origin(place, "rdkafka" if software.name == "librdkafka" else "client-1", software, mechanism),
        "token_id": token_id,
    }


def user_login(who: Account, reason: RefusalReason) -> Fields:
    """Give the fields of a login without a token that is refused; some come to their end before there is a name."""
    nameless = reason in {RefusalReason.UNSUPPORTED_MECHANISM, RefusalReason.BROKEN_EXCHANGE}
    return {
        "type": EventType.LOGIN,
        "outcome": Outcome.REFUSED,
        "reason": reason,
        **_origin(who.place, who.client_id, who.software, who.mechanism),
        "principal": None if nameless else who.principal,
    }


def _origin(place: Place, client_id: str, software: Software, mechanism: str) -> Fields:
    return {
        "listener": place.listener,
        "client_id": client_id,
        "client_software": software.name,
        "client_software_version": software.version,
        "client_address": place.address,
        "mechanism": mechanism,
    }

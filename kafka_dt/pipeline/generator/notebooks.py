"""People with notebooks: a token in the morning, kernels that start and stop, and what people forget.

An owner works in the hub, in the office (whose addresses are leased by the day) or at home through the VPN. In some
evenings the owner continues at another place with the same token and the same client. The owner renews some tokens for
another day and revokes some when the work is done; most tokens simply expire, and some are never used. A kernel that
stays open overnight goes on trying to log in after its token has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator.lives import Cancellation, Renewal, Retries, TokenLife, TokenSession, port, token_id
from kafka_dt.pipeline.generator.scenario import EXPIRY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Scenario

if TYPE_CHECKING:
    import random

    from kafka_dt.pipeline.generator.clients import Place
    from kafka_dt.pipeline.generator.owners import Owner

LOOK_BACK_DAYS: Final = 3
_AT_WORK: Final = 0.75
_ON_A_WEEKEND: Final = 0.06
_NEVER_USED: Final = 0.12
_RENEWED: Final = 0.12
_ENDED: Final = 0.15
_EVENING: Final = 0.25
_LEFT_OPEN: Final = 0.06


def lives(scenario: Scenario, owner: Owner, day: int) -> Iterator[TokenLife]:
    """Plan the tokens of a person whose life touches a day."""
    begin_ms, end_ms = scenario.begin_ms(day), scenario.begin_ms(day + 1)
    for begun in range(day - LOOK_BACK_DAYS, day + 1):
        chance = scenario.chance("notebook", owner.number, begun)
        if chance.random() < (_AT_WORK if scenario.is_working_day(begun) else _ON_A_WEEKEND):
            for _ in range(chance.choice((1, 1, 1, 2))):
                life = _life(scenario, owner, begun, chance)
                if life.issued_ms < end_ms and life.last_ms >= begin_ms:
                    yield life


def _life(scenario: Scenario, owner: Owner, day: int, chance: random.Random) -> TokenLife:
    issued_ms = scenario.begin_ms(day) + 7 * HOUR_MS + chance.randrange(6 * HOUR_MS)
    token = token_id(chance)
    renewers = owner.renewers(issued_ms)
    if chance.random() < _NEVER_USED:
        return TokenLife(token, owner.account, renewers, issued_ms)
    renewals: tuple[Renewal, ...] = ()
    if chance.random() < _RENEWED:
        renewals = (Renewal(issued_ms + 20 * HOUR_MS + chance.randrange(3 * HOUR_MS), owner.account),)
    sessions = list(_kernels(owner, issued_ms, chance))
    if renewals:
        sessions += _kernels(owner, renewals[0].at_ms, chance)
    cancelled: Cancellation | None = None
    retries: tuple[Retries, ...] = ()
    way = chance.random()
    if way < _ENDED:
        done_ms = max(each.end_ms for each in sessions) + chance.randrange(MINUTE_MS, 20 * MINUTE_MS)
        cancelled = Cancellation(done_ms, owner.account)
    elif way < _ENDED + _LEFT_OPEN:
        end_ms = (renewals[0].at_ms if renewals else issued_ms) + EXPIRY_MS
        last = sessions.pop()
        left = TokenSession(last.place, last.client_id, last.software, last.begin_ms, end_ms, last.port)
        sessions.append(left)
        until_ms = end_ms + chance.randrange(10 * MINUTE_MS, 3 * HOUR_MS)
        retries = (Retries(left, tuple(range(end_ms + 5 * SECOND_MS, until_ms, 5 * MINUTE_MS))),)
    return TokenLife(token, owner.account, renewers, issued_ms, renewals, cancelled, tuple(sessions), retries)


def _kernels(owner: Owner, begin_ms: int, chance: random.Random) -> Iterator[TokenSession]:
    """Draw the kernels of a day."""
    hub, office, vpn = owner.home
    # Each owner has a usual way of working, and exceptions.
    usual = (hub, office, vpn)[owner.number % 3]
    place = (usual if chance.random() < 0.8 else chance.choice((hub, office))).any_host(chance)  # noqa: PLR2004
    at_ms = begin_ms + chance.randrange(MINUTE_MS, 30 * MINUTE_MS)
    for _ in range(chance.choice((1, 2, 2, 3, 5))):
        lasts_ms = chance.randrange(10 * MINUTE_MS, 3 * HOUR_MS)
        yield _kernel(owner, place, (at_ms, at_ms + lasts_ms), chance)
        at_ms += lasts_ms // 2 + chance.randrange(HOUR_MS)
    if chance.random() < _EVENING:
        at_ms = begin_ms + 9 * HOUR_MS + chance.randrange(2 * HOUR_MS)
        yield _kernel(owner, vpn.any_host(chance), (at_ms, at_ms + chance.randrange(HOUR_MS) + MINUTE_MS), chance)


def _kernel(owner: Owner, place: Place, span: tuple[int, int], chance: random.Random) -> TokenSession:
    software = owner.versions.at(span[0])
    client_id = "rdkafka" if software.name == "confluent-kafka-python" else software.name or "aiokafka-0.12.0"
    return TokenSession(place, client_id, software, *span, port(chance))

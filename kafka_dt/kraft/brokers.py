"""Look at each broker of a cluster, at the address to which a gateway forwards requests for it.

    findings = await examine_brokers(connection, config, ScramMechanism.SHA_512, gateway)

`fitness` asks one broker. But settings belong to each broker: one without `delegation.token.secret.key` takes no token,
and one with another address in `advertised.listeners` may be out of reach, although the bootstrap servers answer. And
all must have the same key (`secret_keys.py`). No problem with one of them keeps a node from serving the others, so each
is a warning.

Source: KIP-700 (DescribeCluster).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.client import Address, LoginFailed, TokenClientError
from kafka_dt.client.connection import Connection
from kafka_dt.client.login import log_in
from kafka_dt.config.options.gateway import UPSTREAM_PREFIX
from kafka_dt.kraft.finding import Finding
from kafka_dt.kraft.fitness import login_by_token, tokens_on
from kafka_dt.kraft.requests import describe_cluster
from kafka_dt.kraft.secret_keys import compared, find_token, hmac_at
from kafka_dt_protocol.sasl.text import printable

if TYPE_CHECKING:
    from kafka_dt.client import ClientConfig
    from kafka_dt.tokens import Principal, Token
    from kafka_dt_protocol.sasl import ScramMechanism

POINT: Final = "each broker"
AT_ONCE: Final = 8
"""How many brokers are asked at once."""
PATIENCE_S: Final = 10.0
"""How long a broker may take for all questions, in seconds."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a broker has told."""

    finding: Finding
    hmac: bytes | None = field(default=None, repr=False)
    """That of the token that all brokers are asked about; None if it has told none."""


async def examine_brokers(
    connection: Connection, config: ClientConfig, mechanism: ScramMechanism, gateway: Principal
) -> Sequence[Finding]:
    """Look at each broker that the cluster names.

    Args:
        connection: one that is logged in as the gateway.
        config: to connect to the brokers.
        mechanism: how tokens log in.
        gateway: the gateway's principal.

    Returns:
        A finding for each broker with a problem, in the order of their ids; one without a problem if there is none.
        Then one about their secret keys, if two of them have a token that the gateway may describe.

    Raises TokenClientError if the cluster cannot be asked.
    """
    brokers = sorted((await describe_cluster(connection)).brokers, key=lambda each: each.broker_id)
    token = await find_token(connection, gateway) if len(brokers) > 1 else None
    places = asyncio.Semaphore(AT_ONCE)

    async def look(broker: Any) -> _Answer:
        async with places:
            return await _look(broker, config, mechanism, gateway, token)

    answers = await asyncio.gather(*(look(each) for each in brokers))
    findings = [each.finding for each in answers if not each.finding.fit] or [Finding(POINT)]
    hmacs = {
        broker.broker_id: answer.hmac
        for broker, answer in zip(brokers, answers, strict=True)
        if answer.hmac is not None
    }
    keys = None if token is None else compared(token, hmacs)
    return findings if keys is None else [*findings, keys]


async def _look(
    broker: Any, config: ClientConfig, mechanism: ScramMechanism, gateway: Principal, token: Token | None
) -> _Answer:
    address = Address(broker.host, broker.port)
    name = f"broker {broker.broker_id} at {printable(str(address))}"
    try:
        async with asyncio.timeout(PATIENCE_S):
            answer = await _ask(address, config, mechanism, gateway, token)
    except TimeoutError:
        return _problem(f"{name} has not answered within {PATIENCE_S:g} s", "look at its log")
    except LoginFailed as error:
        refused = error.text(UPSTREAM_PREFIX)
        return _problem(
            f"{name} refuses the gateway's login: {refused}", "compare its listener with those of the others"
        )
    except TokenClientError as error:
        return _problem(f"{name} cannot be asked: {error}", "start it, or correct its advertised.listeners")
    finding = answer.finding
    return answer if finding.fit else _problem(f"broker {broker.broker_id}: {finding.problem}", finding.remedy)


async def _ask(
    address: Address, config: ClientConfig, mechanism: ScramMechanism, gateway: Principal, token: Token | None
) -> _Answer:
    if config.security_protocol.uses_sasl:
        finding = await login_by_token(address, config, mechanism)
        if not finding.fit:
            return _Answer(finding)
    connection = await Connection.open(address, config)
    try:
        if config.security_protocol.uses_sasl and config.sasl_login is not None:
            await log_in(connection, config.sasl_login, secrets.token_bytes)
        finding = await tokens_on(connection)
        if token is None or not finding.fit:
            return _Answer(finding)
        return _Answer(finding, await hmac_at(connection, token, gateway))
    finally:
        connection.abort()


def _problem(problem: str, remedy: str) -> _Answer:
    return _Answer(Finding(POINT, problem, remedy, needed=False))

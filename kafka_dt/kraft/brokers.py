"""Look at each broker of a cluster, at the address to which a gateway forwards requests for it.

    findings = await examine_brokers(connection, config, ScramMechanism.SHA_512)

`fitness` asks one broker. But settings belong to each broker: one without `delegation.token.secret.key` takes no token,
and one with another address in `advertised.listeners` may be out of reach, although the bootstrap servers answer. No
problem with one of them keeps a node from serving the others, so each is a warning.

Source: KIP-700 (DescribeCluster).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.client import Address, LoginFailed, TokenClientError
from kafka_dt.client.connection import Connection
from kafka_dt.client.login import log_in
from kafka_dt.kraft.finding import Finding
from kafka_dt.kraft.fitness import login_by_token, tokens_on
from kafka_dt.kraft.requests import describe_cluster
from kafka_dt_protocol.sasl.text import printable

if TYPE_CHECKING:
    from kafka_dt.client import ClientConfig
    from kafka_dt_protocol.sasl import ScramMechanism

POINT: Final = "each broker"
AT_ONCE: Final = 8
"""How many brokers are asked at once."""
PATIENCE_S: Final = 10.0
"""How long a broker may take for all questions, in seconds."""


async def examine_brokers(connection: Connection, config: ClientConfig, mechanism: ScramMechanism) -> Sequence[Finding]:
    """Look at each broker that the cluster names.

    Args:
        connection: one that is logged in as the gateway.
        config: to connect to the brokers.
        mechanism: how tokens log in.

    Returns:
        A finding for each broker with a problem, in the order of their ids; one without a problem if there is none.

    Raises TokenClientError if the cluster cannot be asked.
    """
    brokers = sorted((await describe_cluster(connection)).brokers, key=lambda each: each.broker_id)
    places = asyncio.Semaphore(AT_ONCE)

    async def look(broker: Any) -> Finding:
        async with places:
            return await _look(broker, config, mechanism)

    findings = await asyncio.gather(*(look(each) for each in brokers))
    return [each for each in findings if not each.fit] or [Finding(POINT)]


async def _look(broker: Any, config: ClientConfig, mechanism: ScramMechanism) -> Finding:
    address = Address(broker.host, broker.port)
    name = f"broker {broker.broker_id} at {printable(str(address))}"
    try:
        async with asyncio.timeout(PATIENCE_S):
            finding = await _ask(address, config, mechanism)
    except TimeoutError:
        return _problem(f"{name} has not answered within {PATIENCE_S:g} s", "look at its log")
    except LoginFailed as error:
        return _problem(f"{name} refuses the gateway's login: {error}", "compare its listener with those of the others")
    except TokenClientError as error:
        return _problem(f"{name} cannot be asked: {error}", "start it, or correct its advertised.listeners")
    return finding if finding.fit else _problem(f"broker {broker.broker_id}: {finding.problem}", finding.remedy)


async def _ask(address: Address, config: ClientConfig, mechanism: ScramMechanism) -> Finding:
    if config.security_protocol.uses_sasl:
        finding = await login_by_token(address, config, mechanism)
        if not finding.fit:
            return finding
    connection = await Connection.open(address, config)
    try:
        if config.security_protocol.uses_sasl and config.sasl_login is not None:
            await log_in(connection, config.sasl_login, secrets.token_bytes)
        return await tokens_on(connection)
    finally:
        connection.abort()


def _problem(problem: str, remedy: str) -> Finding:
    return Finding(POINT, problem, remedy, needed=False)

"""Tell whether a cluster can be the store of a gateway's tokens, and how to make it fit.

    findings = await examine(connection, config, gateway, ScramMechanism.SHA_512)
    [each for each in findings if not each.fit]

A gateway that keeps its tokens elsewhere, and logs clients in with tokens of the cluster, needs less of it:
`examine_for_logins`.

Nothing is changed in the cluster. The right to create tokens is tried with a request that a cluster can only refuse: a
broker looks at the right first, and then at the type of the renewers.

Limit: a describe leaves out the tokens that the gateway may not see, without a word. So it cannot be found out here
whether the gateway sees all of them.

Source: KIP-48, KIP-373, KIP-836, KIP-900; kafka.server.KafkaApis (handleCreateTokenRequest, handleDescribeAcls).
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.client import RequestRefused, UnsupportedByServer, parse_addresses
from kafka_dt.client.connection import Connection
from kafka_dt.client.token_client import OWNER_VERSION
from kafka_dt.clock import now_ms
from kafka_dt.config.gateway import IDENTITY_MECHANISM
from kafka_dt.kraft import requests
from kafka_dt.kraft.finding import SAME_KEY, Finding, allow
from kafka_dt.tokens import NewToken, Principal
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl.text import printable

if TYPE_CHECKING:
    from kafka_dt.client import Address, ClientConfig
    from kafka_dt.kraft.offsets import LogEnd
    from kafka_dt_protocol.sasl import ScramMechanism

METADATA_VERSION: Final = 14
"""The first `metadata.version` with delegation tokens: 3.6-IV2 (KIP-900)."""
LOOKS: Final = 30
LOOK_S: Final = 0.1
"""How often the check looks at the offset of the image, and with which pause."""
CLOCK_MS: Final = 5_000
"""By how much the clocks of this machine and of the controller may differ."""
_PROBE: Final = Principal.user("kafka-dt-upstream-check")
"""The owner of a token that is asked for and never made."""
_NO_USER: Final = Principal("NoUser", "kafka-dt-upstream-check")
"""A renewer that no token can have."""
_NO_LOG: Final = "use kafka.dt.token.store=zookeeper"
_ANY: Final = 1
"""The number of "any" in the filters of ACLs."""


async def examine(
    connection: Connection,
    config: ClientConfig,
    gateway: Principal,
    mechanism: ScramMechanism,
    now_ms: Callable[[], int] = now_ms,
    *,
    creates: bool = True,
) -> Sequence[Finding]:
    """Look at a cluster.

    Args:
        connection: one that is logged in as the gateway.
        config: to make another one.
        gateway: the gateway's principal.
        mechanism: how tokens log in.
        now_ms: the clock of this machine, milliseconds since 1970.
        creates: whether the gateway creates tokens for its clients, so that it needs the right to.

    Raises TokenClientError if the cluster cannot be asked.
    """
    findings = [await look(connection, gateway) for look in _LOOKS]
    if creates:
        findings.append(await _create_tokens(connection, gateway))
    findings += await _metadata_log(connection, gateway, now_ms)
    return [*findings, *await _logins_by_token(connection, config, mechanism)]


async def examine_for_logins(
    connection: Connection, config: ClientConfig, mechanism: ScramMechanism
) -> Sequence[Finding]:
    """Look at whether a gateway can log clients in with tokens of the cluster; see `examine`."""
    return [await tokens_on(connection), *await _logins_by_token(connection, config, mechanism)]


async def tokens_for(connection: Connection, gateway: Principal, owner: Principal) -> Finding:
    """See whether the gateway may create tokens for a user. No token is made.

    Raises TokenClientError if the broker cannot be asked.
    """
    point = f"tokens for {printable(str(owner))}"
    if connection.version(ApiKey.CREATE_DELEGATION_TOKEN) < OWNER_VERSION:
        problem = f"{connection.server} creates tokens for no other user than the one who asks"
        return Finding(point, problem, "upgrade the brokers to Kafka 3.3 or later")
    if await _may_create(connection, gateway, owner):
        return Finding(point)
    user = shlex.quote(printable(str(owner)))
    remedy = allow(gateway, f"--operation CreateTokens --user-principal {user}")
    problem = f"{gateway} may not create {point}"
    return Finding(point, problem, f"unless {printable(str(owner))} is a super user there: {remedy}")


async def _logins_by_token(
    connection: Connection, config: ClientConfig, mechanism: ScramMechanism
) -> Sequence[Finding]:
    if not config.security_protocol.uses_sasl:
        return ()
    (address,) = parse_addresses(connection.server)
    return (await login_by_token(address, config, mechanism),)


async def login_by_token(address: Address, config: ClientConfig, mechanism: ScramMechanism) -> Finding:
    """See whether a listener takes logins by token, over a connection that is not logged in.

    Raises TokenClientError if the broker cannot be asked.
    """
    point = "logins by token"
    connection = await Connection.open(address, config)
    try:
        answer = await connection.request(ApiKey.SASL_HANDSHAKE, mechanism=mechanism)
    finally:
        connection.abort()
    if mechanism in answer.mechanisms:
        return Finding(point)
    remedy = f"add it to sasl.enabled.mechanisms there, or set {IDENTITY_MECHANISM}"
    return Finding(point, f"{address} does not take {mechanism}, with which clients' tokens log in", remedy)


async def cluster_id(connection: Connection) -> str:
    """Return the id of the cluster."""
    return str((await requests.describe_cluster(connection)).cluster_id)


async def _metadata_version(connection: Connection, _: Principal) -> Finding:
    point = "metadata.version"
    levels = {each.name: each.max_version_level for each in _finalized(await connection.ask_versions())}
    level = levels.get("metadata.version")
    if level is None:
        return Finding(point, "the cluster has no metadata log", _NO_LOG)
    if level < METADATA_VERSION:
        remedy = "kafka-features.sh --bootstrap-server ... upgrade --release-version 3.9"
        return Finding(point, f"the metadata.version {level} of the cluster has no delegation tokens", remedy)
    return Finding(point)


async def tokens_on(connection: Connection) -> Finding:
    """See whether a broker has delegation tokens, over a connection that is logged in as the gateway.

    Raises TokenClientError if the broker cannot be asked.
    """
    point = "delegation tokens"
    answer = await connection.request(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=())
    if answer.error_code is ErrorCode.delegation_token_auth_disabled:
        return Finding(point, f"delegation tokens are switched off at {connection.server}", SAME_KEY)
    if answer.error_code is ErrorCode.delegation_token_request_not_allowed:
        remedy = "log in as a user, by kafka.dt.gateway.upstream.sasl.jaas.config"
        return Finding(point, "the gateway's login may not ask for tokens", remedy)
    return _of(point, answer.error_code)


async def _authorizer(connection: Connection, gateway: Principal) -> Finding:
    point = "authorizer"
    answer = await connection.request(
        ApiKey.DESCRIBE_ACLS,
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=str(_PROBE),
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    if answer.error_code is ErrorCode.security_disabled:
        remedy = "set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer on all servers"
        return Finding(point, "the cluster has no authorizer, so every user can read the secrets of all tokens", remedy)
    return _of(point, answer.error_code, gateway)


async def _metadata_log(connection: Connection, gateway: Principal, now_ms: Callable[[], int]) -> Sequence[Finding]:
    """See whether the gateway may ask for the end of the log; the controller tells its time with it."""
    point = "metadata log"
    asked_ms = now_ms()
    try:
        end = await requests.log_end(connection)
    except RequestRefused as refusal:
        return [_of(point, refusal.code, gateway)]
    except UnsupportedByServer as error:
        return [Finding(point, str(error), _NO_LOG)]
    return [Finding(point), _clock(end, asked_ms, now_ms())]


def _clock(end: LogEnd, asked_ms: int, answered_ms: int) -> Finding:
    """Compare the clocks; the controller has looked at its own between the question and its answer."""
    point = "clock"
    if end.time_ms is None:
        return Finding(point, "the controllers do not tell their time", "compare the clocks by hand", needed=False)
    behind_ms = end.time_ms - answered_ms
    ahead_ms = asked_ms - end.time_ms
    if max(behind_ms, ahead_ms) <= CLOCK_MS:
        return Finding(point)
    side, by_ms = ("behind", behind_ms) if behind_ms > 0 else ("ahead of", ahead_ms)
    problem = (
        f"the clock of this machine is {by_ms / 1000:.0f} s {side} the controller's, so tokens end at another time"
    )
    return Finding(point, problem, "set the clocks of all machines by NTP", needed=False)


async def _records(connection: Connection, _: Principal) -> Finding:
    point = "records in the metadata log"
    try:
        first = await requests.image_offset(connection)
    except UnsupportedByServer as error:
        return Finding(point, str(error), _NO_LOG)
    for _look in range(LOOKS):
        if await requests.image_offset(connection) > first:
            return Finding(point)
        await asyncio.sleep(LOOK_S)
    remedy = "set metadata.max.idle.interval.ms=500 on the controllers, its default, and see whether a quorum is there"
    problem = f"{connection.server} hears of no new records, so no answer can be proved to be new"
    return Finding(point, problem, remedy, passes=True)


async def _create_tokens(connection: Connection, gateway: Principal) -> Finding:
    point = "tokens for all users"
    if await _may_create(connection, gateway, _PROBE):
        return Finding(point)
    remedy = allow(gateway, "--operation CreateTokens --user-principal User:NAME")
    problem = f"{gateway} may not create tokens for every user"
    return Finding(point, problem, f"for each user who comes through it, but no super user: {remedy}", needed=False)


async def _may_create(connection: Connection, gateway: Principal, owner: Principal) -> bool:
    """Say whether a right to create a user's tokens is there, by a request that is refused with it as well."""
    try:
        await requests.create(connection, NewToken(owner, gateway, (_NO_USER,), max_lifetime_ms=1), gateway)
    except RequestRefused as refusal:
        return refusal.code is not ErrorCode.delegation_token_authorization_failed
    return True


_LOOKS: Final[Sequence[Callable[[Connection, Principal], Awaitable[Finding]]]] = (
    _metadata_version,
    lambda connection, _: tokens_on(connection),
    _authorizer,
    _records,
)


def _finalized(versions: Any) -> Sequence[Any]:
    found: Sequence[Any] = getattr(versions, "finalized_features", ())
    return found


def _of(point: str, code: ErrorCode, gateway: Principal | None = None) -> Finding:
    """Return what an error of the cluster means for a point; the errors that all points share."""
    if code is ErrorCode.none:
        return Finding(point)
    if code is ErrorCode.cluster_authorization_failed and gateway is not None:
        remedy = allow(gateway, "--operation Describe --cluster")
        return Finding(point, f"{gateway} may not describe the cluster", remedy)
    problem, remedy = f"the cluster answered with error {code.value} ({code.name})", "see the log of the broker"
    if code.retriable:
        return Finding(point, problem, f"try again in some seconds; then {remedy}", passes=True)
    return Finding(point, problem, remedy)

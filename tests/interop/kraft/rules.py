"""The rules of a cluster without ZooKeeper about delegation tokens, as a broker answers and as a node does.

    place = at_a_broker(cluster)                    # or at_a_node(cluster, node)
    answer = await RULES["errors of renewals"](place)

`tests/vectors/kraft` has the answers of a broker of each release, and docs/differences.md the rules in words. To record
those of a release again, with real brokers:

    python -m tests.interop.kraft.rules 4.x         # or 3.9
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kafka_dt.client import DelegationToken, RequestRefused, TokenClient
from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from tests.interop.kraft.conftest import at_brokers
from tests.interop.kraft.logins import by_token
from tests.support.brokers.kraft import GATEWAY, RELEASES, KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.docs.documents import ROOT
from tests.support.identity.acl_client import Acl
from tests.support.java.jvm import find_java
from tests.support.java.maven import resolve
from tests.support.nodes.gateway import Gateway
from tests.support.nodes.node import ADMIN, SHA_256
from tests.support.processes.waiting import POLL_S, on_this_machine
from tests.support.protocol.raw import METADATA, LoginRefused, RawConnection

VECTORS: Final = ROOT / "tests" / "vectors" / "kraft"
HOUR, DAY = 3_600_000, 86_400_000
BEYOND: Final = 10**12
"""More milliseconds than any limit allows."""
SETTLED_S: Final = 20.0
"""Within this time the controller decides on what a change has made: it reads its own log with some delay."""
KNOWN_WITHIN_S: Final = 5.0
"""Within this time a broker takes a token that was made a moment ago."""
CLOSED_WITHIN_S: Final = 1.0

ALICE: Final = "User:alice"
CREATE_FOR_ALICE: Final = Acl("User:carol", AclOperation.CREATE_TOKENS, ResourceType.USER, ALICE)
DESCRIBE_OF_ALICE: Final = Acl("User:carol", AclOperation.DESCRIBE_TOKENS, ResourceType.USER, ALICE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where tokens are managed."""

    cluster: KraftCluster
    address: str
    client: Callable[[str], TokenClient]
    """Gives a client that logs in as a user, with a password."""
    super_user: str


def at_a_broker(cluster: KraftCluster) -> Place:
    """The first broker."""
    return Place(cluster, cluster.brokers[1].sasl, partial(at_brokers, cluster, broker=1), GATEWAY)


def at_a_node(cluster: KraftCluster, node: Gateway) -> Place:
    """A node in front of it."""
    return Place(cluster, node.sasl, node.client, ADMIN)


async def periods_of_renewals(place: Place) -> object:
    """For how many hours a renewal is."""
    async with place.client("alice") as alice:
        made = await settled_token(alice, max_lifetime_ms=2 * DAY)
        hours = {}
        for name, period_ms in (("beyond", BEYOND), ("-1", -1), ("0", 0), ("one hour", HOUR)):
            expiry_ms = await alice.renew(made.hmac, period_ms)
            hours[name] = round((expiry_ms - time.time() * 1000) / HOUR)
        return hours


async def errors_of_renewals(place: Place) -> object:
    """What is answered, by who asks and for which token."""
    async with place.client("alice") as alice, place.client("carol") as stranger:
        made = await settled_token(alice)
        answers = {
            "of another": await code_of(stranger.renew(made.hmac)),
            "unknown": await code_of(alice.renew(b"x" * 64)),
        }
        await end(place, alice, made)
        answers["ended"] = await code_of(alice.renew(made.hmac))
        # The worker of the stranger hears of it a moment after that of alice.
        answers["of another, ended"] = await last_code(66, lambda: stranger.renew(made.hmac))
        return answers


async def errors_of_expiries(place: Place) -> object:
    """What is answered, by who asks and for which token."""
    async with place.client("alice") as alice, place.client("carol") as stranger:
        made = await settled_token(alice)
        answers = {"of another": await code_of(stranger.expire(made.hmac))}
        await end(place, alice, made)
        answers["ended"] = await code_of(alice.expire(made.hmac, HOUR))
        # As above. An expiry is never answered so: whose token it is decides before whether it has ended.
        assert await last_code(66, lambda: stranger.renew(made.hmac)) == 66
        answers["of another, ended"] = await code_of(stranger.expire(made.hmac, HOUR))
        answers["ended, deleted"] = await code_of(alice.expire(made.hmac))
        answers["deleted"] = await last_code(62, lambda: alice.expire(made.hmac))
        return answers


async def super_users(place: Place) -> object:
    """What a super user may do with a token of another."""
    async with place.client("alice") as alice, place.client(place.super_user) as operator:
        made = await settled_token(alice)
        return {"renew": await code_of(operator.renew(made.hmac)), "expire": await code_of(operator.expire(made.hmac))}


async def tokens_for_others(place: Place) -> object:
    """Who may create a token for alice."""

    async def create(user: str) -> int:
        async with place.client(user) as client:
            return await code_of(client.create(owner=ALICE))

    answers = {"without a right": await create("carol"), "as a super user": await create(place.super_user)}
    with Operator(place.cluster).allowing(CREATE_FOR_ALICE):
        answers["with CreateTokens"] = await create("carol")
    return answers


async def who_reads_secrets(place: Place) -> object:
    """Whether a user finds a token of alice's, with its HMAC, in a describe."""
    async with place.client("alice") as alice:
        made = await settled_token(alice, renewers=["User:bob"])
        await until(lambda: finds(place, "alice", made))
        users = {"owner": "alice", "renewer": "bob", "super user": place.super_user, "another": "carol"}
        answers = {name: await finds(place, user, made) for name, user in users.items()}
        operator = Operator(place.cluster)
        one_token = Acl("User:carol", AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, made.token_id)
        for name, acl in (("with DescribeTokens", DESCRIBE_OF_ALICE), ("with Describe on the token", one_token)):
            with operator.allowing(acl):
                answers[name] = await finds(place, "carol", made)
        return answers


async def no_authorizer(place: Place) -> object:
    """Whether another user reads the secret of a token in a cluster without an authorizer."""
    async with place.client("alice") as alice:
        made = await settled_token(alice)
        await until(lambda: finds(place, "alice", made))
        return {"another": await finds(place, "carol", made)}


async def limits_of_tokens(place: Place) -> object:
    """How long a new token lives at most, in hours, and the renewers of one that names a renewer twice."""
    async with place.client("alice") as alice:
        made = await settled_token(alice, renewers=["User:bob", "User:bob"], max_lifetime_ms=BEYOND)

        async def shown() -> DelegationToken | None:
            return next((each for each in await alice.describe() if each.token_id == made.token_id), None)

        await until(shown)
        found = await shown()
        assert found is not None
        lifetimes = (found.max_timestamp_ms, found.expiry_timestamp_ms)
        hours = [round((timestamp_ms - found.issue_timestamp_ms) / HOUR) for timestamp_ms in lifetimes]
        return {"longest lifetime": hours[0], "first expiry": hours[1], "renewers": found.renewers}


async def logins(place: Place) -> object:
    """Whether a token logs in, with and without the extension `tokenauth`."""
    async with place.client("alice") as alice:
        made = await settled_token(alice)

    async def accepted(*, says_so: bool) -> bool:
        return await asyncio.to_thread(logs_in, place, made, says_so=says_so)

    await until(lambda: accepted(says_so=True))
    return {"with tokenauth": True, "without tokenauth": await accepted(says_so=False)}


async def connections_of_revoked_tokens(place: Place) -> object:
    """Whether a connection ends when the token that it logged in with is revoked."""
    async with place.client("alice") as alice:
        made = await settled_token(alice)
        await until(lambda: asyncio.to_thread(logs_in, place, made, says_so=True))
        with connected(place, made, says_so=True) as connection:
            connection.ask(METADATA, 1, topics=())
            await alice.expire(made.hmac)
            closed = await asyncio.to_thread(connection.closed, on_this_machine(CLOSED_WITHIN_S))
            if not closed:
                connection.ask(METADATA, 1, topics=())
    return "is closed" if closed else "is served"


async def requests_by_token(place: Place) -> object:
    """What a client that logged in with a token is answered."""
    async with place.client("alice") as alice:
        made = await settled_token(alice)
    await until(lambda: asyncio.to_thread(logs_in, place, made, says_so=True))
    async with by_token(place.address, made) as client:
        return {
            "create": await code_of(client.create()),
            "renew": await code_of(client.renew(made.hmac)),
            "expire": await code_of(client.expire(made.hmac)),
            "describe": await code_of(client.describe()),
        }


Rule = Callable[[Place], Awaitable[object]]

RULES: Final[Mapping[str, Rule]] = {
    "periods of renewals": periods_of_renewals,
    "errors of renewals": errors_of_renewals,
    "errors of expiries": errors_of_expiries,
    "super users": super_users,
    "tokens for others": tokens_for_others,
    "who reads secrets": who_reads_secrets,
    "limits of tokens": limits_of_tokens,
    "logins": logins,
    "connections of revoked tokens": connections_of_revoked_tokens,
    "requests by token": requests_by_token,
}
"""By the names under which the vectors and docs/differences.md have them."""

NO_AUTHORIZER: Final = {"authorizer.class.name": ""}
WITHOUT_AUTHORIZER: Final[Mapping[str, Rule]] = {"no authorizer": no_authorizer}
"""Of a cluster with the setting above, in front of which no node starts."""

AT_A_NODE: Final[Mapping[str, Mapping[str, object] | str]] = {
    "super users": {"expire": 0},
    "logins": {"without tokenauth": True},
    "connections of revoked tokens": "is closed",
}
"""Where the answers of a node differ: instead of a broker's."""


async def code_of(request: Awaitable[object]) -> int:
    """The error code of an answer; 0 if it is none."""
    try:
        await request
    except RequestRefused as refusal:
        code: int = refusal.code.value
        return code
    return 0


async def last_code(wanted: int, ask: Callable[[], Awaitable[object]]) -> int:
    """Ask until the error code is as wanted, or time is up; gives the last one."""
    deadline = time.monotonic() + on_this_machine(SETTLED_S)
    while True:
        code = await code_of(ask())
        if code == wanted or time.monotonic() > deadline:
            return code
        await asyncio.sleep(POLL_S)


async def finds(place: Place, user: str, made: DelegationToken) -> bool:
    """Whether a user finds a token, with its HMAC, in a describe."""
    async with place.client(user) as client:
        return made.hmac in {each.hmac for each in await client.describe()}


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(on_this_machine(KNOWN_WITHIN_S)):
        while True:
            if await condition():
                return
            await asyncio.sleep(POLL_S)


async def settled_token(owner: TokenClient, **arguments: Any) -> DelegationToken:
    """Create a token, and wait until the controller finds it."""
    made = await owner.create(**arguments)
    assert await last_code(0, lambda: owner.renew(made.hmac)) == 0
    return made


async def end(place: Place, owner: TokenClient, made: DelegationToken) -> None:
    """Let a token expire now, and wait until the controller knows it.

    A stranger asks, at a broker: the owner's renewal would succeed while the controller does not know of the expiry,
    and undo it. A node knows it before the controller does.
    """
    await owner.expire(made.hmac, 1)
    async with at_brokers(place.cluster, "carol") as stranger:
        assert await last_code(66, lambda: stranger.renew(made.hmac)) == 66


def connected(place: Place, made: DelegationToken, *, says_so: bool) -> RawConnection:
    """A connection that has logged in with a token; raises LoginRefused."""
    connection = RawConnection(place.address)
    try:
        connection.login_scram(made.token_id, made.hmac_base64, SHA_256, token=says_so)
    except BaseException:
        connection.close()
        raise
    return connection


def logs_in(place: Place, made: DelegationToken, *, says_so: bool) -> bool:
    """Whether a token logs in."""
    try:
        connected(place, made, says_so=says_so).close()
    except LoginRefused:
        return False
    return True


def vectors(release: str) -> Path:
    """The file with the answers of a broker of a release of `RELEASES`."""
    return VECTORS / f"rules-{release}.json"


async def record(cluster: KraftCluster, rules: Mapping[str, Rule]) -> Mapping[str, object]:
    """Ask a broker about rules."""
    return {name: await ask(at_a_broker(cluster)) for name, ask in rules.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("release", choices=RELEASES)
    release = parser.parse_args().release
    java = find_java()
    jars = tuple(jar for bundle in RELEASES[release] for jar in resolve(bundle, java))
    found: dict[str, object] = {}
    for rules, overrides in ((RULES, {}), (WITHOUT_AUTHORIZER, NO_AUTHORIZER)):
        with (
            TemporaryDirectory() as folder,
            KraftCluster(Path(folder), java=java, classpath=jars, brokers=1, overrides=overrides) as running,
        ):
            found |= asyncio.run(record(running, rules))
    vectors(release).write_text(json.dumps(found, indent=1) + "\n")

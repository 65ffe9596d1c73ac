"""See whether the brokers of a cluster have the same `delegation.token.secret.key`.

    token = await find_token(connection, gateway)       # one that the gateway may describe
    hmac = await hmac_at(connection, token, gateway)    # at each broker
    compared(token, {1: hmac, 2: ...})

A broker makes the HMAC of a token with its own key, so the HMACs of one token show whether the keys are the same.

Limits: without a token there is nothing to compare. A controller tells HMACs only of the tokens that it creates, so its
key is not compared.

Source: KIP-48; KIP-900 (a DelegationTokenRecord has no HMAC).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafka_dt.client.token_client import OWNER_VERSION
from kafka_dt.kraft.finding import SAME_KEY, Finding
from kafka_dt.kraft.listing import Listing
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.api.registry import ASKED
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.sasl.text import printable

if TYPE_CHECKING:
    from kafka_dt.client.connection import Connection
    from kafka_dt.tokens import Principal, StoredToken, Token

POINT: Final = "secret keys of the brokers"
_API: Final = ApiKey.DESCRIBE_DELEGATION_TOKEN


async def find_token(connection: Connection, gateway: Principal) -> Token | None:
    """Return a token that the gateway may describe, of the owner with the fewest; None if there is none.

    Raises RequestRefused, and what Connection.request raises.
    """
    if connection.version(_API) < OWNER_VERSION:
        return None
    of_owner: dict[Principal, list[Token]] = defaultdict(list)
    for stored in (await _described(connection, gateway, None)).values():
        of_owner[stored.token.owner].append(stored.token)
    fewest = min(of_owner.values(), key=len, default=())
    return max(fewest, key=lambda each: each.end_timestamp_ms, default=None)


async def hmac_at(connection: Connection, token: Token, gateway: Principal) -> bytes | None:
    """Return the HMAC that a broker tells of a token; None if it has no such token.

    Raises RequestRefused, and what Connection.request raises.
    """
    if connection.version(_API) < OWNER_VERSION:
        return None
    stored = (await _described(connection, gateway, token.owner)).get(token.token_id)
    return None if stored is None else stored.hmac


def compared(token: Token, hmacs: Mapping[int, bytes]) -> Finding | None:
    """Compare what brokers tell; None where there are not two to compare.

    Args:
        token: what they were asked about.
        hmacs: the answers, by the ids of the brokers.
    """
    brokers: dict[bytes, list[str]] = defaultdict(list)
    for broker_id, hmac in sorted(hmacs.items()):
        brokers[hmac].append(str(broker_id))
    if len(brokers) <= 1:
        return Finding(POINT) if len(hmacs) > 1 else None
    groups = "; ".join(", ".join(ids) for ids in brokers.values())
    problem = (
        f"brokers tell different HMACs of delegation token {printable(token.token_id)} (broker ids: {groups}), so each "
        "client that has it is refused by some of them"
    )
    return Finding(POINT, problem, SAME_KEY, needed=False)


async def _described(connection: Connection, gateway: Principal, owner: Principal | None) -> Mapping[str, StoredToken]:
    """Return the tokens of an owner, or of all, by their ids."""
    version = connection.version(_API)
    element = element_type(ASKED[_API].request[version], "owners")
    owners = None if owner is None else (element(principal_type=owner.type, principal_name=owner.name),)
    listing, _ = Listing().read(await connection.request_undecoded(_API, owners=owners), version, gateway)
    return listing.tokens

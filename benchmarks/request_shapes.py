"""The worst requests of each kind: for every API of a node, and for bytes that are no request.

    for shape in SHAPES:
        payload = shape.payload(5_000)      # of a frame, which is as large as the number says

What is worst differs: many tiny elements cost processor time and memory, one long text costs memory and lines of the
log, the smallest request costs most for each of its bytes. A kind has a shape for each of these where they differ.

Source: docs/protocol.md.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

from kafka_dt.identity.acls.binding import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_dt_protocol import APIS, ApiKey, build, element_type
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.times import to_duration

FEW: Final = 1
MANY: Final = 500
MOST: Final = 5_000
"""Numbers of elements: the smallest request, and two by which growth is seen."""
LONG: Final = (1_000, 30_000)
"""Lengths of a text, which has 32,767 bytes at most where its length has two."""
HUGE: Final = (100_000, 1_000_000)
"""Lengths of bytes."""
FEW_CHANGES: Final = (1, 50, 500)
"""Numbers of elements that are each written to ZooKeeper."""
_PERIOD: Final = to_duration(-1)


class Caller(Enum):
    """Who sends requests; the value says it in the table."""

    STRANGER = "before login"
    ANONYMOUS = "no login (PLAINTEXT)"
    USER = "a user"
    TOKEN = "a token's login"  # noqa: S105 - a description
    ADMIN = "a super user"


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of request, in one of its worst forms."""

    name: str
    caller: Caller
    payload: Callable[[int], bytes]
    """Gives the payload of a frame of a size."""
    sizes: tuple[int, ...] = (FEW,)
    first: tuple[bytes, ...] = ()
    """Payloads that are sent, and answered, before it."""
    ends: bool = False
    """Whether the next one needs another connection."""
    api: ApiKey | None = None


def _text(length: int) -> str:
    return "x" * length


def _header(api: ApiKey, version: int, *, flexible: bool, client_id: bytes) -> bytes:
    start = struct.pack(">hhih", api, version, 1, len(client_id)) + client_id
    return start + b"\0" if flexible else start


def _request(api: ApiKey, version: int, **values: Any) -> bytes:
    return _named_request(b"c", api, version, **values)


def _named_request(client_id: bytes, api: ApiKey, version: int, **values: Any) -> bytes:
    entity_type = APIS[api].request[version]
    header = _header(api, version, flexible=entity_type.__flexible__, client_id=client_id)
    return header + encode(build(entity_type, **values))


def _elements(api: ApiKey, version: int, field: str, size: int, values: Callable[[int], Mapping[str, Any]]) -> Any:
    element = element_type(APIS[api].request[version], field)
    return tuple(build(element, **values(number)) for number in range(size))


def _metadata(size: int) -> bytes:
    topics = _elements(ApiKey.METADATA, 12, "topics", size, lambda number: {"name": f"{number:x}", "topic_id": None})
    return _request(
        ApiKey.METADATA, 12, topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )


def _coordinators(size: int) -> bytes:
    keys = tuple(f"{number:x}" for number in range(size))
    return _request(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=keys)


def _cluster(_: int) -> bytes:
    return _request(ApiKey.DESCRIBE_CLUSTER, 1, include_cluster_authorized_operations=True, endpoint_type=1)


def _acl(number: int, name: str = "") -> Mapping[str, Any]:
    return {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name or f"{number:x}",
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:u",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": AclPermissionType.ALLOW,
    }


def _filter(number: int) -> Mapping[str, Any]:
    return {
        "resource_type_filter": ResourceType.TOPIC,
        "resource_name_filter": f"{number:x}",
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": AclOperation.ANY,
        "permission_type": AclPermissionType.ANY,
    }


def _describe_acls(_: int) -> bytes:
    return _request(ApiKey.DESCRIBE_ACLS, 3, **{**_filter(0), "resource_name_filter": None})


def _create_acls(size: int) -> bytes:
    return _request(ApiKey.CREATE_ACLS, 3, creations=_elements(ApiKey.CREATE_ACLS, 3, "creations", size, _acl))


def _create_long_acl(length: int) -> bytes:
    creations = _elements(ApiKey.CREATE_ACLS, 3, "creations", 1, lambda number: _acl(number, _text(length)))
    return _named_request(_text(length).encode(), ApiKey.CREATE_ACLS, 3, creations=creations)


def _delete_acls(size: int) -> bytes:
    return _request(ApiKey.DELETE_ACLS, 3, filters=_elements(ApiKey.DELETE_ACLS, 3, "filters", size, _filter))


def _create_token(size: int, owner: str | None = None) -> bytes:
    renewers = _elements(
        ApiKey.CREATE_DELEGATION_TOKEN,
        3,
        "renewers",
        size,
        lambda number: {"principal_type": "User", "principal_name": f"{number:x}"},
    )
    owner_type = None if owner is None else "User"
    values = {"owner_principal_type": owner_type, "owner_principal_name": owner, "max_lifetime": _PERIOD}
    return _request(ApiKey.CREATE_DELEGATION_TOKEN, 3, renewers=renewers, **values)


def _create_for_long_owner(length: int) -> bytes:
    return _create_token(0, _text(length))


def _renew(length: int) -> bytes:
    return _request(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=bytes(length), renew_period=_PERIOD)


def _expire(length: int) -> bytes:
    return _request(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=bytes(length), expiry_time_period=_PERIOD)


def _describe_tokens(size: int) -> bytes:
    """Ask for the tokens of owners, the one who has many of them over and over."""
    owners = _elements(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        3,
        "owners",
        size,
        lambda number: {"principal_type": "User", "principal_name": f"{number:x}" if number % 2 else "thousand"},
    )
    return _request(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=owners)


def _describe_configs(size: int) -> bytes:
    values = {"resource_type": 2, "configuration_keys": None}
    resources = _elements(
        ApiKey.DESCRIBE_CONFIGS, 4, "resources", size, lambda number: {"resource_name": f"{number:x}", **values}
    )
    return _request(ApiKey.DESCRIBE_CONFIGS, 4, resources=resources, include_synonyms=True, include_documentation=True)


def _list_groups(size: int) -> bytes:
    return _request(
        ApiKey.LIST_GROUPS, 5, states_filter=tuple(f"{number:x}" for number in range(size)), types_filter=()
    )


def _describe_quotas(size: int) -> bytes:
    api = ApiKey.DESCRIBE_CLIENT_QUOTAS
    component = element_type(APIS[api].request[1], "components")
    components = tuple(component(entity_type="user", match_type=0, match=f"{number:x}") for number in range(size))
    return _request(api, 1, components=components, strict=False)


def _alter_quotas(size: int) -> bytes:
    api = ApiKey.ALTER_CLIENT_QUOTAS
    entries = _elements(api, 1, "entries", size, lambda _: {"entity": (), "ops": ()})
    return _request(api, 1, entries=entries, validate_only=False)


def _describe_users(size: int) -> bytes:
    api = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    return _request(api, 0, users=_elements(api, 0, "users", size, lambda number: {"name": f"{number:x}"}))


def _alter_users(size: int) -> bytes:
    api = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    values = {"mechanism": 1, "iterations": 4096, "salt": bytes(12), "salted_password": bytes(32)}
    upsertions = _elements(api, 0, "upsertions", size, lambda number: {"name": f"u{number:x}", **values})
    return _request(api, 0, deletions=(), upsertions=upsertions)


def _api_versions(length: int) -> bytes:
    return _request(ApiKey.API_VERSIONS, 3, client_software_name=_text(length), client_software_version="1")


def _handshake(mechanism: str) -> bytes:
    return _request(ApiKey.SASL_HANDSHAKE, 1, mechanism=mechanism)


def _authenticate(message: bytes) -> bytes:
    return _request(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=message)


def _plain(length: int) -> bytes:
    return _authenticate(f"\0{_text(length)}\0wrong".encode())


def _scram(length: int) -> bytes:
    return _authenticate(f"n,,n={_text(length)},r=nonce".encode())


def _bearer(length: int) -> bytes:
    return _authenticate(f"n,,\x01auth=Bearer {_text(length)}.{_text(8)}.{_text(8)}\x01\x01".encode())


def _digest(length: int) -> bytes:
    return _authenticate(f'username="{_text(length)}",realm="kafka"'.encode())


def _garbage(length: int) -> bytes:
    return bytes(number * 37 % 251 + 1 for number in range(length))


def _unknown_api(length: int) -> bytes:
    return struct.pack(">hhih", 999, 0, 1, 1) + b"c" + bytes(length)


_Payload = Callable[[int], bytes]

_SERVED: Final[Sequence[tuple[str, ApiKey, _Payload, tuple[int, ...]]]] = (
    ("ApiVersions, a long name of the client", ApiKey.API_VERSIONS, _api_versions, LONG),
    ("Metadata, topics", ApiKey.METADATA, _metadata, (FEW, 200, 2_000)),
    ("FindCoordinator, groups", ApiKey.FIND_COORDINATOR, _coordinators, (FEW, 200, 2_000)),
    ("DescribeCluster", ApiKey.DESCRIBE_CLUSTER, _cluster, (FEW,)),
    ("DescribeAcls", ApiKey.DESCRIBE_ACLS, _describe_acls, (FEW,)),
    ("CreateAcls, tiny ACLs", ApiKey.CREATE_ACLS, _create_acls, (FEW, MANY, MOST)),
    ("CreateAcls, a long name and a long client id", ApiKey.CREATE_ACLS, _create_long_acl, LONG),
    ("DeleteAcls, tiny filters", ApiKey.DELETE_ACLS, _delete_acls, (FEW, MANY, MOST)),
    (
        "CreateDelegationToken, renewers, for another owner",
        ApiKey.CREATE_DELEGATION_TOKEN,
        partial(_create_token, owner="o"),
        (FEW, MANY, MOST),
    ),
    (
        "CreateDelegationToken, for an owner with a long name",
        ApiKey.CREATE_DELEGATION_TOKEN,
        _create_for_long_owner,
        LONG,
    ),
    ("RenewDelegationToken, an unknown HMAC", ApiKey.RENEW_DELEGATION_TOKEN, _renew, (64, *HUGE)),
    ("ExpireDelegationToken, an unknown HMAC", ApiKey.EXPIRE_DELEGATION_TOKEN, _expire, (64, *HUGE)),
    ("DescribeDelegationToken, owners", ApiKey.DESCRIBE_DELEGATION_TOKEN, _describe_tokens, (FEW, MANY, MOST)),
    (
        "DescribeUserScramCredentials, users",
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        _describe_users,
        (FEW, MANY, MOST),
    ),
    ("AlterUserScramCredentials, users", ApiKey.ALTER_USER_SCRAM_CREDENTIALS, _alter_users, (FEW, MANY, MOST)),
    ("DescribeConfigs, topics", ApiKey.DESCRIBE_CONFIGS, _describe_configs, (FEW, 200, 2_000)),
    ("ListGroups, states", ApiKey.LIST_GROUPS, _list_groups, (FEW, 100, 1_000)),
    ("DescribeClientQuotas, users", ApiKey.DESCRIBE_CLIENT_QUOTAS, _describe_quotas, (FEW, 100, 1_000)),
    ("AlterClientQuotas, empty entries", ApiKey.ALTER_CLIENT_QUOTAS, _alter_quotas, (FEW, MANY, MOST)),
)
"""Of each API that a client can call on a connection that is logged in, or needs no login."""

_OF_TOKENS: Final = (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN)
"""Of those, some that a login by token may not call."""

_CHANGES: Final = (
    ("CreateAcls, new ACLs", ApiKey.CREATE_ACLS, _create_acls, FEW_CHANGES),
    ("DescribeAcls, all", ApiKey.DESCRIBE_ACLS, _describe_acls, (FEW,)),
    ("DeleteAcls, tiny filters", ApiKey.DELETE_ACLS, _delete_acls, FEW_CHANGES),
    ("AlterUserScramCredentials, users", ApiKey.ALTER_USER_SCRAM_CREDENTIALS, _alter_users, FEW_CHANGES),
    (
        "DescribeUserScramCredentials, users",
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        _describe_users,
        (FEW, MANY, MOST),
    ),
)
"""What a super user may do and others may not."""


def _ending(caller: Caller) -> Iterator[Shape]:
    """Give what costs a client its connection: bytes that are no request, and logins that fail."""
    sizes = (10, 10_000, 100_000)
    yield Shape("bytes that are no request", caller, _garbage, sizes, ends=True)
    yield Shape("an API that there is not", caller, _unknown_api, sizes, ends=True)
    handshake, authenticate = ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE
    mechanism_sizes = (10, *LONG)
    yield Shape(
        "SaslHandshake, a long mechanism",
        caller,
        lambda length: _handshake(_text(length)),
        mechanism_sizes,
        ends=True,
        api=handshake,
    )
    messages = {"PLAIN": _plain, "SCRAM-SHA-256": _scram, "DIGEST-MD5": _digest, "OAUTHBEARER": _bearer}
    for mechanism, payload in messages.items():
        name, first = f"SaslAuthenticate, {mechanism} with a long name", (_handshake(mechanism),)
        yield Shape(name, caller, payload, sizes, first=first, ends=True, api=authenticate)


SHAPES: Final = (
    *_ending(Caller.STRANGER),
    Shape("a request before the login", Caller.STRANGER, _describe_tokens, (FEW, MANY, MOST), ends=True),
    Shape(
        "ApiVersions, a long name of the client",
        Caller.STRANGER,
        _api_versions,
        LONG,
        ends=True,  # before a login a client may ask once
        api=ApiKey.API_VERSIONS,
    ),
    *_ending(Caller.USER),
    *(
        Shape(name, caller, payload, sizes, api=api)
        for caller in (Caller.ANONYMOUS, Caller.USER)
        for name, api, payload, sizes in _SERVED
    ),
    *(Shape(name, Caller.TOKEN, payload, sizes, api=api) for name, api, payload, sizes in _SERVED if api in _OF_TOKENS),
    *(Shape(name, Caller.ADMIN, payload, sizes, api=api) for name, api, payload, sizes in _CHANGES),
)
"""Every kind."""

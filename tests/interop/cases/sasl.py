"""SASL before login: handshakes, requests out of turn, bare tokens, PLAIN.

Source: KIP-43, KIP-152; org.apache.kafka.common.security.authenticator.SaslServerAuthenticator,
org.apache.kafka.common.security.plain.internals.PlainSaslServer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import build, element_type
from kafka_dt_protocol.wire.times import to_duration
from tests.interop.cases.frames import CLOSED, PLAIN_ALICE
from tests.support.protocol.conversation import Case, Stage, unrecorded
from tests.support.protocol.raw import (
    API_VERSIONS,
    CREATE,
    DESCRIBE,
    DESCRIBE_CLUSTER,
    EXPIRE,
    METADATA,
    RENEW,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from tests.support.protocol.wire import Wire

FIND_COORDINATOR: Final = 10
LIST_GROUPS: Final = 16
DESCRIBE_CONFIGS: Final = 32
DESCRIBE_QUOTAS: Final = 48
ALTER_QUOTAS: Final = 49
MECHANISMS: Final = "mechanisms=['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512']"
ACCEPTED: Final = "SaslAuthenticate v{}: error_code=0 error_message='' auth_bytes=b''"
REFUSED: Final = "SaslAuthenticate v2: error_code=58 error_message={!r} auth_bytes=b'' session_lifetime=0"
ANONYMOUS: Final = "principal_type='User' principal_name='ANONYMOUS'"
REQUESTER: Final = f"{ANONYMOUS} token_requester_principal_type='User' token_requester_principal_name='ANONYMOUS'"
NO_OPERATIONS: Final = -(2**31)
ILLEGAL_STATE: Final = "error_code=34 error_message='Request is not valid given the current SASL state.'"
API_NAMES: Final = {
    METADATA: "Metadata",
    FIND_COORDINATOR: "FindCoordinator",
    SASL_HANDSHAKE: "SaslHandshake",
    CREATE: "CreateDelegationToken",
    RENEW: "RenewDelegationToken",
    EXPIRE: "ExpireDelegationToken",
    DESCRIBE: "DescribeDelegationToken",
    DESCRIBE_CLUSTER: "DescribeCluster",
    LIST_GROUPS: "ListGroups",
    DESCRIBE_CONFIGS: "DescribeConfigs",
    DESCRIBE_QUOTAS: "DescribeClientQuotas",
    ALTER_QUOTAS: "AlterClientQuotas",
}
GARBAGE: Final = b"\x60\x82\x02\x5a\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\x00\x6e\x82"
"""How a token of GSSAPI begins: old clients send it first of all."""


def handshakes() -> Iterator[Case]:
    for version in (0, 1):
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            yield Case(
                f"handshake v{version} with {mechanism}",
                shaking_hands(mechanism, version, Wire.stays),
                (f"SaslHandshake v{version}: error_code=0 {MECHANISMS}", "open"),
            )
        for mechanism in ("plain", "PLAIN ", "", "GSSAPI", "OAUTHBEARER", "SCRAM-SHA-1", "x" * 1000):
            yield Case(
                f"handshake v{version} with {mechanism[:20]!r}",
                shaking_hands(mechanism, version),
                (f"SaslHandshake v{version}: error_code=33 {MECHANISMS}", "closed"),
            )


def shaking_hands(mechanism: str, version: int, end: Callable[[Wire], None] = Wire.ends) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.stranger()
        wire.handshake(mechanism, version)
        end(wire)

    return talk


def first_requests() -> Iterator[Case]:
    for (api_key, version), values in requests().items():
        yield Case(f"API {api_key} v{version} first", first(api_key, version, values), CLOSED)
        yield Case(
            f"API {api_key} v{version} after api versions",
            first(api_key, version, values, after_versions=True),
            CLOSED,
        )
    yield Case("a frame of GSSAPI first", first_frame(GARBAGE), CLOSED)
    yield Case("a bare PLAIN message first", first_frame(PLAIN_ALICE), CLOSED)


def requests() -> Mapping[tuple[int, int], dict[str, Any]]:
    """A request of every API and version but handshake and ApiVersions."""
    owner: dict[str, Any] = {"owner_principal_type": None, "owner_principal_name": None}
    creation = {"renewers": (), "max_lifetime": to_duration(-1)}
    topics = {"topics": ()}
    auto = {**topics, "allow_auto_topic_creation": False}
    operations = {"include_topic_authorized_operations": False}
    cluster = {"include_cluster_authorized_operations": False}
    return {
        **{(METADATA, version): topics for version in range(4)},
        **{(METADATA, version): auto for version in range(4, 8)},
        **{(METADATA, version): {**auto, **operations, **cluster} for version in range(8, 11)},
        **{(METADATA, version): {**auto, **operations} for version in range(11, 13)},
        (FIND_COORDINATOR, 0): {"key": "group"},
        **{(FIND_COORDINATOR, version): {"key": "group", "key_type": 0} for version in range(1, 4)},
        **{(FIND_COORDINATOR, version): {"key_type": 0, "coordinator_keys": ("group", "other")} for version in (4, 6)},
        **{(SASL_AUTHENTICATE, version): {"auth_bytes": PLAIN_ALICE} for version in range(3)},
        **{(CREATE, version): creation for version in range(3)},
        (CREATE, 3): {**creation, **owner},
        **{(RENEW, version): {"hmac": b"x", "renew_period": to_duration(-1)} for version in range(3)},
        **{(EXPIRE, version): {"hmac": b"x", "expiry_time_period": to_duration(-1)} for version in range(3)},
        **{(DESCRIBE, version): {"owners": None} for version in range(4)},
        (DESCRIBE_CLUSTER, 0): cluster,
        (DESCRIBE_CLUSTER, 1): {**cluster, "endpoint_type": 1},
        (LIST_GROUPS, 0): {},
        (LIST_GROUPS, 5): {"states_filter": (), "types_filter": ()},
        **{(DESCRIBE_CONFIGS, version): _of_topic(version) for version in (1, 4)},
        **{(DESCRIBE_QUOTAS, version): {"components": (), "strict": False} for version in (0, 1)},
        **{(ALTER_QUOTAS, version): _of_user(version) for version in (0, 1)},
    }


def _of_topic(version: int) -> dict[str, Any]:
    resource = element_type(APIS[ApiKey.DESCRIBE_CONFIGS].request[version], "resources")
    resources = (resource(resource_type=2, resource_name="t", configuration_keys=None),)
    documentation = {"include_documentation": False} if version >= 3 else {}
    return {"resources": resources, "include_synonyms": False, **documentation}


def _of_user(version: int) -> dict[str, Any]:
    entry = element_type(APIS[ApiKey.ALTER_CLIENT_QUOTAS].request[version], "entries")
    entity = element_type(entry, "entity")(entity_type="user", entity_name="alice")
    return {"entries": (entry(entity=(entity,), ops=()),), "validate_only": False}


def first(
    api_key: int, version: int, values: Mapping[str, Any], *, after_versions: bool = False
) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.stranger()
        if after_versions:
            with unrecorded(wire):
                wire.ask(API_VERSIONS, 0)
        wire.request(api_key, version, **values)
        wire.ends()

    return talk


def first_frame(payload: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.stranger()
        wire.send_frame(payload)
        wire.ends()

    return talk


def during_exchange() -> Iterator[Case]:
    """After handshake v1, anything but SaslAuthenticate is refused in its own layout."""
    for (api_key, version), values in requests().items():
        if api_key != SASL_AUTHENTICATE:
            yield Case(
                f"API {api_key} v{version} during a login",
                interrupting(api_key, version, values),
                (refusal(api_key, version), "closed"),
            )
    for version in (0, 1, 4, 9, 12):
        topic = element_type(APIS[ApiKey.METADATA].request[version], "topics")
        values = {
            **requests()[METADATA, version],
            "topics": (build(topic, name="t", topic_id=None), build(topic, name="u", topic_id=None)),
        }
        yield Case(
            f"API 3 v{version} with topics during a login",
            interrupting(METADATA, version, values),
            (refusal(METADATA, version, ", ".join(_refused_topic(version, name) for name in "tu")), "closed"),
        )
    for version in (0, 1):
        yield Case(
            f"a second handshake v{version}",
            interrupting(SASL_HANDSHAKE, version, {"mechanism": "PLAIN"}),
            (refusal(SASL_HANDSHAKE, version), "closed"),
        )
    broken = {
        "SaslAuthenticate v3": struct.pack(">hhihb", SASL_AUTHENTICATE, 3, 1, -1, 0) + b"\x02x\0",
        "SaslAuthenticate v-1": struct.pack(">hhih", SASL_AUTHENTICATE, -1, 1, -1) + struct.pack(">i", 1) + b"x",
        "SaslAuthenticate v1 with null bytes": struct.pack(">hhihi", SASL_AUTHENTICATE, 1, 1, -1, -1),
        "SaslAuthenticate v2 with null bytes": struct.pack(">hhihb", SASL_AUTHENTICATE, 2, 1, -1, 0) + b"\0\0",
        "an unknown API": struct.pack(">hhih", 9999, 0, 1, -1),
        "a bare PLAIN message": PLAIN_ALICE,
        "a frame of length 0": b"",
        "a frame of GSSAPI": GARBAGE,
        "Vote": struct.pack(">hhihb", 52, 0, 1, -1, 0) + bytes(16),
    }
    for what, payload in broken.items():
        yield Case(f"{what} during a login", breaking(payload), CLOSED)


def refusal(api_key: int, version: int, topics: str = "") -> str:
    """Error 34 as each API says it."""
    cluster = "cluster_id=None " if version >= 2 else ""
    operations = f" cluster_authorized_operations={NO_OPERATIONS}" if 8 <= version <= 10 else ""
    texts = {
        METADATA: f"brokers=[] {cluster}{'controller_id=-1 ' if version else ''}topics=[{topics}]{operations}",
        FIND_COORDINATOR: _refused_coordinator(version),
        SASL_HANDSHAKE: "error_code=34 mechanisms=[]",
        CREATE: f"error_code=34 {ANONYMOUS if version < 3 else REQUESTER} issue_timestamp=-1 expiry_timestamp=-1 "
        "max_timestamp=-1 token_id='' hmac=b''",
        RENEW: "error_code=34 expiry_timestamp=0",
        EXPIRE: "error_code=34 expiry_timestamp=0",
        DESCRIBE: "error_code=34 tokens=[]",
        DESCRIBE_CLUSTER: f"{_in_words('DESCRIBE_CLUSTER')} {'endpoint_type=1 ' if version else ''}cluster_id='' "
        f"controller_id=-1 brokers=[] cluster_authorized_operations={NO_OPERATIONS}",
        LIST_GROUPS: "error_code=34 groups=[]",
        DESCRIBE_CONFIGS: f"results=[{ILLEGAL_STATE} resource_type=2 resource_name='t' configs=[]]",
        DESCRIBE_QUOTAS: f"{_in_words('DESCRIBE_CLIENT_QUOTAS')} entries=None",
        ALTER_QUOTAS: f"entries=[{ILLEGAL_STATE} entity=[entity_type='user' entity_name='alice']]",
    }
    return f"{API_NAMES[api_key]} v{version}: {texts[api_key]}"


def _in_words(name: str) -> str:
    return f"error_code=34 error_message='Unexpected Kafka request of type {name} during SASL authentication.'"


def _refused_topic(version: int, name: str) -> str:
    topic_id = "topic_id=None " if version >= 10 else ""
    internal = "is_internal=False " if version else ""
    operations = f" topic_authorized_operations={NO_OPERATIONS}" if version >= 8 else ""
    return f"error_code=34 name={name!r} {topic_id}{internal}partitions=[]{operations}"


def _refused_coordinator(version: int) -> str:
    if version < 4:
        return f"{ILLEGAL_STATE if version else 'error_code=34'} node_id=-1 host='' port=-1"
    entries = (f"key={key!r} node_id=-1 host='' port=-1 {ILLEGAL_STATE}" for key in ("group", "other"))
    return f"coordinators=[{', '.join(entries)}]"


def interrupting(api_key: int, version: int, values: Mapping[str, Any]) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = chosen(stage)
        wire.ask(api_key, version, **values)
        wire.ends()

    return talk


def breaking(payload: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = chosen(stage)
        wire.send_frame(payload)
        wire.ends()

    return talk


def chosen(stage: Stage, mechanism: str = "PLAIN", version: int = 1) -> Wire:
    """A connection that has chosen its mechanism."""
    wire = stage.stranger()
    with unrecorded(wire):
        wire.handshake(mechanism, version)
    return wire


def bare_exchange() -> Iterator[Case]:
    yield Case("a bare PLAIN login", bare(PLAIN_ALICE), ("bare b''", "works"))
    yield Case("a bare PLAIN login with a wrong password", bare(b"\0alice\0wrong"), CLOSED)
    yield Case("a bare PLAIN login without a message", bare(b""), CLOSED)
    yield Case("a bare message of 2 MB", bare(bytes(2_000_000)), CLOSED)
    yield Case("a bare message that is a SaslAuthenticate", bare_request(SASL_AUTHENTICATE), CLOSED)
    yield Case("a bare message that is a handshake", bare_request(SASL_HANDSHAKE), CLOSED)
    yield Case("a bare message that is an api versions", bare_request(API_VERSIONS), CLOSED)


def bare(message: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = chosen(stage, version=0)
        wire.send_frame(message)
        wire.bare()
        wire.works()

    return talk


def bare_request(api_key: int) -> Callable[[Stage], None]:
    values: dict[int, dict[str, Any]] = {
        SASL_AUTHENTICATE: {"auth_bytes": PLAIN_ALICE},
        SASL_HANDSHAKE: {"mechanism": "PLAIN"},
    }

    def talk(stage: Stage) -> None:
        wire = chosen(stage, version=0)
        wire.request(api_key, 0, **values.get(api_key, {}))
        wire.bare()

    return talk


def plain() -> Iterator[Case]:
    for version in range(3):
        lifetime = " session_lifetime=0" if version else ""
        yield Case(
            f"PLAIN by SaslAuthenticate v{version}",
            saying(PLAIN_ALICE, version),
            (ACCEPTED.format(version) + lifetime, "works"),
        )
    wrong = "Authentication failed: Invalid username or password"
    other = "Authentication failed: Client requested an authorization id that is different from username"
    nameless = "Authentication failed: username not specified"
    without_password = "Authentication failed: password not specified"
    tokens = "Invalid SASL/PLAIN response: expected 3 tokens, got {}"
    refused = {
        b"\0alice\0wrong": wrong,
        b"\0nobody\0wrong": wrong,
        b"\0Alice\0alice-secret": wrong,
        b"\0alice\0alice-secret ": wrong,
        b"bob\0alice\0wrong": wrong,
        b"bob\0nobody\0wrong": wrong,
        b"bob\0alice\0alice-secret": other,
        b"ALICE\0alice\0alice-secret": other,
        b"\0\0x": nameless,
        b"\0\0": nameless,
        b"\0alice\0": without_password,
        b"bob\0alice\0": without_password,
        b"": tokens.format(1),
        b"alice": tokens.format(1),
        b"\0alice": tokens.format(2),
        b"\0alice\0alice-secret\0": tokens.format(4),
        b"\0alice\0alice-secret\0x": tokens.format(4),
        b"\0a\0b\0c\0d\0e\0f": tokens.format(4),
        b"\0\0\0\0": tokens.format(4),
    }
    for message, reason in refused.items():
        yield Case(f"PLAIN {message!r}", saying(message), (REFUSED.format(reason), "closed"))
    yield Case(
        "PLAIN with the user as authorization id",
        saying(b"alice\0alice\0alice-secret"),
        (ACCEPTED.format(2) + " session_lifetime=0", "works"),
    )
    yield Case("PLAIN with text that is not UTF-8", saying(b"\0alic\xff\0x"), (REFUSED.format(wrong), "closed"))
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        generic = (
            f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
        )
        for message in (PLAIN_ALICE, b"", b"n,,n=alice", b"\xff\xff"):
            yield Case(
                f"{mechanism} {message!r}",
                saying(message, mechanism=mechanism),
                (REFUSED.format(generic), "closed"),
            )


def saying(message: bytes, version: int = 2, mechanism: str = "PLAIN") -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = chosen(stage, mechanism)
        answer = wire.authenticate(message, version)
        (wire.ends if answer.error_code.value else wire.works)()

    return talk


CASES: Final = tuple(chain(handshakes(), first_requests(), during_exchange(), bare_exchange(), plain()))

"""Frames and headers: what closes a connection, what is forgiven, in which order answers come.

Source: org.apache.kafka.common.network.NetworkReceive, org.apache.kafka.common.requests.RequestHeader,
org.apache.kafka.common.protocol.ByteBufferAccessor, kafka.network.SocketServer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from tests.support.protocol import bodies
from tests.support.protocol.conversation import Case, Stage, created, describe, unrecorded
from tests.support.protocol.raw import (
    API_VERSIONS,
    CREATE,
    DESCRIBE,
    METADATA,
    RENEW,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from tests.support.protocol.wire import Wire

VOTE: Final = 52
CLOSED: Final = ("closed",)
OPEN: Final = ("open",)
NOT_FOUND: Final = "RenewDelegationToken v{}: error_code=62 expiry_timestamp=-1"
UNKNOWN_HMAC: Final = b"unknown"
PLAIN_ALICE: Final = b"\0alice\0alice-secret"

Connect = Callable[[Stage], Wire]
LISTENERS: Final[tuple[tuple[str, Connect], ...]] = (
    ("before login", Stage.stranger),
    ("after login", Stage.user),
    ("without login", Stage.anonymous),
)


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def renewal(wire: Wire, version: int = 2, body: bytes | None = None) -> bytes:
    """A renewal of a token that there is none of: harmless, and refused with error 62."""
    header = wire.header(RENEW, version, flexible=version >= bodies.FIRST_FLEXIBLE)
    return header + (bodies.change(version, UNKNOWN_HMAC, -1) if body is None else body)


def lengths() -> Iterator[Case]:
    for name, connect, limit in (
        ("before login", Stage.stranger, 524_288),
        ("after login", Stage.user, 104_857_600),
        ("without login", Stage.anonymous, 104_857_600),
    ):
        for length in (-1, -(2**31), limit + 1, 2**31 - 1):
            yield Case(f"frame length {length} {name}", announcing(connect, length), CLOSED)
        yield Case(f"frame length {limit} {name}", announcing(connect, limit, waits=True), OPEN)


def announcing(connect: Connect, length: int, *, waits: bool = False) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = connect(stage)
        wire.send(struct.pack(">i", length))
        (wire.stays if waits else wire.ends)()

    return talk


def headers() -> Iterator[Case]:
    payloads = {
        "empty": b"",
        "2 bytes": b"\0\x12",
        "header cut in the correlation id": struct.pack(">hhh", API_VERSIONS, 0, 1),
        "header cut before the client id": struct.pack(">hhi", API_VERSIONS, 0, 1),
        "header cut in the client id": struct.pack(">hhih", API_VERSIONS, 0, 1, 4) + b"raw",
        "header without its tag buffer": struct.pack(">hhih", API_VERSIONS, 3, 1, -1),
        "unknown API key 9999": struct.pack(">hhih", 9999, 0, 1, -1),
        "unknown API key -1": struct.pack(">hhih", -1, 0, 1, -1),
        "Vote, an API of controllers": struct.pack(">hhihb", VOTE, 0, 1, -1, 0) + bytes(16),
        "SaslHandshake v2": struct.pack(">hhih", SASL_HANDSHAKE, 2, 1, -1) + bodies.text("PLAIN", flexible=False),
        "SaslHandshake v-1": struct.pack(">hhih", SASL_HANDSHAKE, -1, 1, -1) + bodies.text("PLAIN", flexible=False),
        "CreateDelegationToken v4": struct.pack(">hhihb", CREATE, 4, 1, -1, 0) + bodies.create(3),
        "RenewDelegationToken v3": struct.pack(">hhihb", RENEW, 3, 1, -1, 0) + bodies.change(2, b"x", -1),
        "DescribeDelegationToken v4": struct.pack(">hhihb", DESCRIBE, 4, 1, -1, 0) + bodies.describe(3, None),
    }
    for name, connect in LISTENERS:
        for what, payload in payloads.items():
            yield Case(f"{what} {name}", sending(connect, payload), CLOSED)


def sending(connect: Connect, payload: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = connect(stage)
        wire.send_frame(payload)
        wire.ends()

    return talk


def broken_bodies() -> Iterator[Case]:
    hmac1, hmac2 = bodies.blob(UNKNOWN_HMAC, flexible=False), bodies.blob(UNKNOWN_HMAC, flexible=True)
    period = struct.pack(">q", -1)
    user = bodies.text("User", flexible=False)
    flexible_user = bodies.text("User", flexible=True)
    broken: tuple[tuple[str, int, int, bytes], ...] = (
        ("renew v1 without a body", RENEW, 1, b""),
        ("renew v1 cut in the period", RENEW, 1, hmac1 + period[:-1]),
        ("renew v1 with bytes beyond the frame", RENEW, 1, struct.pack(">i", 100) + b"x" + period),
        ("renew v1 with null bytes", RENEW, 1, struct.pack(">i", -1) + period),
        ("renew v1 with bytes of length -2", RENEW, 1, struct.pack(">i", -2) + period),
        ("renew v2 without its tag buffer", RENEW, 2, hmac2 + period),
        ("renew v2 with null bytes", RENEW, 2, b"\0" + period + b"\0"),
        ("renew v2 with bytes beyond the frame", RENEW, 2, b"\x7f" + period + b"\0"),
        ("renew v2 with 2 GiB of bytes", RENEW, 2, b"\xff\xff\xff\xff\x07" + period + b"\0"),
        ("renew v2 with a varint of 6 bytes", RENEW, 2, b"\x88\x80\x80\x80\x80\0" + hmac2[1:] + period + b"\0"),
        ("renew v2 with too many tags", RENEW, 2, hmac2 + period + b"\x02\x00\x01x"),
        ("renew v2 with a tag beyond the frame", RENEW, 2, hmac2 + period + b"\x01\x00\x09x"),
        ("create v1 cut in the lifetime", CREATE, 1, bodies.create(1, [("User", "cut")])[:-1]),
        ("create v1 with null renewers", CREATE, 1, bodies.create(1, None)),
        ("create v1 with -2 renewers", CREATE, 1, struct.pack(">i", -2) + period),
        ("create v1 with more renewers than there are", CREATE, 1, struct.pack(">i", 2) + user + user + period),
        ("create v1 with 2^31-1 renewers", CREATE, 1, struct.pack(">i", 2**31 - 1) + period),
        ("create v1 with a renewer without type", CREATE, 1, bodies.create(1, [(None, "bob")])),
        ("create v1 with a renewer without name", CREATE, 1, bodies.create(1, [("User", None)])),
        ("create v1 with a name of length -2", CREATE, 1, struct.pack(">i", 1) + user + b"\xff\xfe" + period),
        ("create v1 with a name beyond the frame", CREATE, 1, struct.pack(">i", 1) + user + b"\x7f\xff" + period),
        ("create v2 with null renewers", CREATE, 2, bodies.create(2, None)),
        ("create v2 with 2^32-2 renewers", CREATE, 2, b"\xff\xff\xff\xff\x0f" + period + b"\0"),
        ("create v2 with a renewer without type", CREATE, 2, bodies.create(2, [(None, "bob")])),
        ("create v2 with a name of 32768 bytes", CREATE, 2, bodies.create(2, [("User", "x" * 32_768)])),
        ("create v2 with a renewer without tag buffer", CREATE, 2, b"\x02" + flexible_user * 2 + period),
        ("create v3 with an owner of 32768 bytes", CREATE, 3, bodies.create(3, owner=("User", "x" * 32_768))),
        ("describe v1 without a body", DESCRIBE, 1, b""),
        ("describe v1 with an owner cut short", DESCRIBE, 1, bodies.describe(1, [("User", "alice")])[:-1]),
        ("metadata v1 with more topics than there are", METADATA, 1, struct.pack(">i", 3)),
        ("api versions v3 without a body", API_VERSIONS, 3, b""),
        ("api versions v3 with a null name", API_VERSIONS, 3, b"\0" + bodies.text("1", flexible=True) + b"\0"),
        ("handshake without a mechanism", SASL_HANDSHAKE, 1, b""),
        ("handshake with a null mechanism", SASL_HANDSHAKE, 1, b"\xff\xff"),
        ("authenticate with null bytes", SASL_AUTHENTICATE, 1, b"\xff\xff\xff\xff"),
        ("authenticate cut short", SASL_AUTHENTICATE, 2, b"\x08abc\0"),
    )
    for what, api_key, version, body in broken:
        yield Case(f"{what} after login", with_body(Stage.user, api_key, version, body), CLOSED)
    for what, api_key, version, body in broken:
        if api_key in {API_VERSIONS, SASL_HANDSHAKE}:
            yield Case(f"{what} before login", with_body(Stage.stranger, api_key, version, body), CLOSED)
        if api_key in {CREATE, RENEW, DESCRIBE} and "cut" in what:
            yield Case(f"{what} without login", with_body(Stage.anonymous, api_key, version, body), CLOSED)
    yield Case("a create cut short makes no token", create_cut_short, ("closed", "[]"))


def with_body(connect: Connect, api_key: int, version: int, body: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = connect(stage)
        flexible = api_key != SASL_HANDSHAKE and version >= (3 if api_key == API_VERSIONS else bodies.FIRST_FLEXIBLE)
        wire.send_frame(wire.header(api_key, version, flexible=flexible) + body)
        wire.ends()

    return talk


def create_cut_short(stage: Stage) -> None:
    renewer = ("User", "renewer of what is cut short")
    wire = stage.user()
    wire.send_frame(wire.header(CREATE, 2, flexible=True) + bodies.create(2, [renewer])[:-1])
    wire.ends()
    observer = stage.user()
    with unrecorded(observer):
        tokens = describe(observer, [renewer]).tokens
    stage.note(str(list(tokens)))


def forgiven() -> Iterator[Case]:
    hmac = bodies.blob(UNKNOWN_HMAC, flexible=True)
    period = struct.pack(">q", -1)
    tags = {
        "a tag": b"\x01\x05\x01x",
        "several tags": b"\x03\x01\x01x\x02\x00\x7f\x02yy",
        "tags in any order": b"\x02\x09\x01x\x03\x01y",
        "a tag of 5 bytes": b"\x01\xff\xff\xff\xff\x07\x01x",
        "an empty tag": b"\x01\x04\x00",
        "a tag count with more bytes than needed": b"\x81\x80\x00\x05\x01x",
    }
    for what, tag in tags.items():
        yield Case(f"{what} in the body", renewing(hmac + period + tag), [NOT_FOUND.format(2)])
        yield Case(f"{what} in the header", renewing_with_header_tags(tag), [NOT_FOUND.format(2)])
        yield Case(f"{what} in an element", creating_with_renewer_tags(tag), [CREATED_V2])
    twice = b"\x02\x05\x01x\x05\x01y"
    yield Case("a tag twice in the body", renewing(hmac + period + twice), [NOT_FOUND.format(2)])
    yield Case("bytes after the body", renewing(hmac + period + b"\0more"), [NOT_FOUND.format(2)])
    yield Case("a length in 4 bytes", renewing(bodies.varint(8, 4) + hmac[1:] + period + b"\0"), [NOT_FOUND.format(2)])
    yield Case(
        "bytes after the body of v1",
        renewing(bodies.blob(UNKNOWN_HMAC, flexible=False) + period + b"more", version=1),
        [NOT_FOUND.format(1)],
    )


CREATED_V2: Final = (
    "CreateDelegationToken v2: error_code=0 principal_type='User' principal_name='alice' issue_timestamp=now+0 "
    "expiry_timestamp=now+86400 max_timestamp=now+604800 token_id=<token> hmac=<hmac of token>"
)
CREATED_V3: Final = (
    "CreateDelegationToken v3: error_code=0 principal_type='User' principal_name={!r} "
    "token_requester_principal_type='User' token_requester_principal_name='alice' issue_timestamp=now+0 "
    "expiry_timestamp=now+86400 max_timestamp=now+604800 token_id=<token> hmac=<hmac of token>"
)


def renewing(body: bytes, version: int = 2) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        wire.send_frame(renewal(wire, version, body))
        wire.answer(RENEW, version)

    return talk


def renewing_with_header_tags(tags: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        wire.send_frame(wire.header(RENEW, 2, flexible=True)[:-1] + tags + bodies.change(2, UNKNOWN_HMAC, -1))
        wire.answer(RENEW, 2)

    return talk


def creating_with_renewer_tags(tags: bytes) -> Callable[[Stage], None]:
    renewer = bodies.text("User", flexible=True) + bodies.text("bob", flexible=True) + tags

    def talk(stage: Stage) -> None:
        wire = stage.user()
        body = bodies.array([renewer], flexible=True) + struct.pack(">q", -1) + b"\0"
        wire.send_frame(wire.header(CREATE, 2, flexible=True) + body)
        created(wire, 2)

    return talk


NEGATIVE: Final = "the protocol has -1 for null and no other negative length: -2 is a malformed message"
NOT_UTF8: Final = "two different names would become one text; KIP-48 has names, not bytes"


def odd_nulls_and_texts() -> Iterator[Case]:
    described = "DescribeDelegationToken v{}: error_code=0"
    yield Case(
        "client id of length -2",
        sending_whole(struct.pack(">hhih", API_VERSIONS, 0, 7, -2), answers=True),
        ("answered",),
        CLOSED,
        NEGATIVE,
    )
    yield Case(
        "owners of length -2",
        describing(1, struct.pack(">i", -2)),
        (described.format(1),),
        CLOSED,
        NEGATIVE,
    )
    yield Case(
        "owners of compact length 2^32-1",
        describing(2, b"\xff\xff\xff\xff\x0f\0"),
        (described.format(2),),
        CLOSED,
        NEGATIVE,
    )
    yield Case(
        "2^31 tags",
        renewing(bodies.blob(UNKNOWN_HMAC, flexible=True) + struct.pack(">q", -1) + b"\x80\x80\x80\x80\x08"),
        (NOT_FOUND.format(2),),
        CLOSED,
        NEGATIVE,
    )
    yield Case(
        "client id that is not UTF-8",
        sending_whole(struct.pack(">hhih", API_VERSIONS, 0, 7, 2) + b"\xff\xfe", answers=True),
        ("answered",),
        CLOSED,
        NOT_UTF8,
    )
    yield Case(
        "renewer that is not UTF-8",
        creating(2, bodies.create(2, [("User", b"a\xff")])),
        (CREATED_V2,),
        CLOSED,
        NOT_UTF8,
    )
    yield Case(
        "owner that is not UTF-8",
        creating(3, bodies.create(3, owner=("User", b"a\xff"))),
        (CREATED_V3.format("a\ufffd"),),
        CLOSED,
        NOT_UTF8,
    )


def sending_whole(payload: bytes, *, answers: bool) -> Callable[[Stage], None]:
    """Send a request whose header is made by hand; its answer is read as a frame."""

    def talk(stage: Stage) -> None:
        wire = stage.user()
        wire.send_frame(payload)
        stage.note("answered" if wire.receive_frame() and answers else "")

    return talk


def describing(version: int, body: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        wire.send_frame(wire.header(DESCRIBE, version, flexible=version >= bodies.FIRST_FLEXIBLE) + body)
        with unrecorded(wire):
            answer = wire.answer(DESCRIBE, version)
        stage.note(f"DescribeDelegationToken v{version}: error_code={answer.error_code.value}")

    return talk


def creating(version: int, body: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        wire.send_frame(wire.header(CREATE, version, flexible=version >= bodies.FIRST_FLEXIBLE) + body)
        created(wire, version)

    return talk


def header_values() -> Iterator[Case]:
    client_ids = {"null": None, "empty": b"", "not ASCII": "Zoë €".encode(), "of 32767 bytes": b"x" * 32_767}
    for what, client_id in client_ids.items():
        yield Case(f"client id {what}", renewing_as(1, client_id), [NOT_FOUND.format(2)])
    for correlation_id in (0, -1, 2**31 - 1, -(2**31)):
        yield Case(f"correlation id {correlation_id}", renewing_as(correlation_id, b"raw"), [NOT_FOUND.format(2)])


def renewing_as(correlation_id: int, client_id: bytes | None) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        header = wire.header_with(correlation_id, RENEW, 2, flexible=True, client_id=client_id)
        wire.send_frame(header + bodies.change(2, UNKNOWN_HMAC, -1))
        wire.answer(RENEW, 2)

    return talk


def order() -> Iterator[Case]:
    answers = ("works", NOT_FOUND.format(2), NOT_FOUND.format(1))
    yield Case("a good request and a bad frame behind it", good_then_bad, (NOT_FOUND.format(2), "closed"))
    yield Case("a good request and a bad length behind it", good_then_bad_length, (NOT_FOUND.format(2), "closed"))
    yield Case("an unfinished frame", unfinished, ("open", *answers[:1]))
    yield Case("60 unfinished frames", sixty_unfinished, ("open", "works"))
    yield Case("a silent connection", lambda stage: stage.stranger().stays(), OPEN)
    yield Case("half closed after a request", half_closed, (NOT_FOUND.format(2), "closed"))
    yield Case("half closed after two requests", half_closed_after_two, (NOT_FOUND.format(2),) * 2 + CLOSED)
    yield Case("half closed inside a frame", half_closed_inside, CLOSED)
    yield Case("half closed in silence", half_closed_in_silence, CLOSED)
    yield Case("requests in one segment", in_one_segment, (NOT_FOUND.format(2),) * 20)
    yield Case("a request byte by byte", byte_by_byte, [NOT_FOUND.format(2)])
    yield Case("a login in one segment", login_in_one_segment, LOGIN)
    yield Case("a login byte by byte", login_byte_by_byte, LOGIN)
    yield Case("requests behind a failed login", behind_a_failed_login, (*LOGIN[:2], BAD_LOGIN, "closed"))


LOGIN: Final = (
    "ApiVersions v0: error_code=0 api_keys=3 17:0-1 18:0-4 36:0-2 38:0-3 39:0-2 40:0-2 41:0-3 60",
    "SaslHandshake v1: error_code=0 mechanisms=['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512']",
    "SaslAuthenticate v2: error_code=0 error_message='' auth_bytes=b'' session_lifetime=0",
    NOT_FOUND.format(2),
)
BAD_LOGIN: Final = (
    "SaslAuthenticate v2: error_code=58 error_message='Authentication failed: Invalid username or password' "
    "auth_bytes=b'' session_lifetime=0"
)


def good_then_bad(stage: Stage) -> None:
    wire = stage.user()
    wire.send(frame(renewal(wire)) + frame(b"\0\0"))
    wire.answer(RENEW, 2)
    wire.ends()


def good_then_bad_length(stage: Stage) -> None:
    wire = stage.user()
    wire.send(frame(renewal(wire)) + b"\xff\xff\xff\xff")
    wire.answer(RENEW, 2)
    wire.ends()


def unfinished(stage: Stage) -> None:
    wire = stage.user()
    wire.send(frame(renewal(wire))[:-1])
    wire.stays()
    stage.user().works()


def sixty_unfinished(stage: Stage) -> None:
    wires = [stage.stranger() for _ in range(60)]
    for wire in wires:
        wire.send(b"\0\0\0\x20\0")
    wires[0].stays()
    stage.user().works()


def half_closed(stage: Stage) -> None:
    wire = stage.user()
    wire.send_frame(renewal(wire))
    wire.finish_writing()
    wire.answer(RENEW, 2)
    wire.ends()


def half_closed_after_two(stage: Stage) -> None:
    wire = stage.user()
    wire.send(frame(renewal(wire)) + frame(renewal(wire)))
    wire.finish_writing()
    wire.answer(RENEW, 2)
    wire.answer(RENEW, 2)
    wire.ends()


def half_closed_inside(stage: Stage) -> None:
    wire = stage.user()
    wire.send(frame(renewal(wire))[:-1])
    wire.finish_writing()
    wire.ends()


def half_closed_in_silence(stage: Stage) -> None:
    wire = stage.stranger()
    wire.finish_writing()
    wire.ends()


def in_one_segment(stage: Stage) -> None:
    wire = stage.user()
    wire.send(b"".join(frame(renewal(wire)) for _ in range(20)))
    for _ in range(20):
        wire.answer(RENEW, 2)


def byte_by_byte(stage: Stage) -> None:
    wire = stage.user()
    for byte in frame(renewal(wire)):
        wire.send(bytes([byte]))
    wire.answer(RENEW, 2)


def login(wire: Wire, message: bytes = PLAIN_ALICE) -> bytes:
    requests = (
        wire.encode(API_VERSIONS, 0),
        wire.encode(SASL_HANDSHAKE, 1, mechanism="PLAIN"),
        wire.encode(SASL_AUTHENTICATE, 2, auth_bytes=message),
        renewal(wire),
    )
    return b"".join(map(frame, requests))


def read_login(wire: Wire) -> None:
    wire.answer(API_VERSIONS, 0)
    wire.answer(SASL_HANDSHAKE, 1)
    wire.answer(SASL_AUTHENTICATE, 2)
    wire.answer(RENEW, 2)


def login_in_one_segment(stage: Stage) -> None:
    wire = stage.stranger()
    wire.send(login(wire))
    read_login(wire)


def login_byte_by_byte(stage: Stage) -> None:
    wire = stage.stranger()
    for byte in login(wire):
        wire.send(bytes([byte]))
    read_login(wire)


def behind_a_failed_login(stage: Stage) -> None:
    wire = stage.stranger()
    wire.send(login(wire, b"\0alice\0wrong"))
    read_login(wire)


CASES: Final = tuple(
    chain(lengths(), headers(), broken_bodies(), forgiven(), odd_nulls_and_texts(), header_values(), order())
)

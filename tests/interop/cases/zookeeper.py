"""ZooKeeper: the bytes and nodes that either writes, and how either reads nodes that another process wrote.

Source: kafka.zk.ZkData, kafka.zk.KafkaZkClient, kafka.common.ZkNodeChangeNotificationListener,
kafka.server.DelegationTokenManagerZk.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.interop.cases import scram
from tests.interop.cases.sasl import chosen
from tests.interop.cases.scram import AT_FIRST, LET_IN, SHA_256, log_in
from tests.interop.cases.tokens import BOB, entry, renewed
from tests.support.brokers.broker import SECRET_KEY
from tests.support.processes.waiting import eventually
from tests.support.protocol.bodies import PrincipalTexts
from tests.support.protocol.conversation import Case, MadeToken, Stage, create, describe, expire, renew, unrecorded
from tests.support.protocol.wire import Wire

TOKENS: Final = "/delegation_token/tokens"
CHANGES: Final = "/delegation_token/token_changes"
WITHIN_S: Final = 5.0
DAY_MS: Final = 86_400_000
ODD_NAME: Final = "a b*~.-_:/%+ä€😀\n"
ODD_NAME_ENCODED: Final = "a%20b%2A%7E.-_%3A%2F%25%2B%C3%A4%E2%82%AC%F0%9F%98%80%0A"
NOTHING: Final = "not described"
AS_STORED: Final = "ZooKeeper is the truth about a token; a broker trusts its memory until it restarts"
KEY_ID: Final = (
    "the field names the secret key that made the token, so that operators can rotate keys; brokers ignore it"
)
VISIBLE: Final = "a token is usable on every node at once, so a node looks up an unknown id in ZooKeeper"


def node(
    owner: str = "User%3Aalice", renewers: Sequence[str] = (), expiry_s: int = 86_400, version: int = 0
) -> tuple[str, str]:
    """The bytes of a token's node, and what ZooKeeper knows of it."""
    names = ",".join(f'"{each}"' for each in renewers)
    return (
        f'{{"issueTimestamp":<now+0>,"renewers":[{names}],"tokenRequester":"User%3Aalice","tokenId":"<token>",'
        f'"owner":"{owner}","expiryTimestamp":<now{expiry_s:+d}>,"maxTimestamp":<now+604800>,"version":3}}',
        f"version {version}, session 0, ['world:anyone:31']",
    )


def with_key(notes: Sequence[str]) -> tuple[str, ...]:
    """What we write into the node of a token: behind all that a broker writes, which key made it."""
    return tuple(note.replace('"version":3}', '"version":3,"keyId":"<key>"}') for note in notes)


def written() -> Iterator[Case]:
    bob = "User%3Abob"
    change = "token_change_9999999999 of session 0"
    renewers = node(renewers=(bob, f"User%3A{ODD_NAME_ENCODED}", bob))
    changes = (
        *(f"1 x {change}", *node()),
        *(f"2 x {change}", *node(expiry_s=3_600, version=1)),
        *(f"3 x {change}", *node(expiry_s=60, version=2)),
        *(f"4 x {change}", "no node"),
    )
    nodes: dict[str, tuple[Callable[[Stage], None], Sequence[str]]] = {
        "the node of a token": (node_of(), node()),
        "the node of a token with renewers": (node_of(renewers=(BOB, ("User", ODD_NAME), BOB)), renewers),
        "the node of a token of another owner": (
            node_of(owner=("Group", ODD_NAME)),
            node(f"Group%3A{ODD_NAME_ENCODED}"),
        ),
        "what changes write": (nodes_of_changes, changes),
    }
    for what, (talk, notes) in nodes.items():
        yield Case(what, talk, notes, with_key(notes), KEY_ID)
    yield Case("what refusals write", nodes_of_refusals, ["nothing"])


def node_of(owner: PrincipalTexts = (None, None), renewers: Sequence[PrincipalTexts] = ()) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        with unrecorded(wire):
            token = create(wire, owner=owner, renewers=renewers)
        note_node(stage, token)

    return talk


def note_node(stage: Stage, token: MadeToken) -> None:
    """Note the node of a token to the byte, except its id and instants."""
    path = f"{TOKENS}/{token.token_id}"
    if not stage.zookeeper.exists(path):
        stage.note("no node")
        return
    data, stat = stage.zookeeper.get(path)
    text = data.decode().replace(token.token_id, "<token>")
    text = re.sub('(?<="keyId":")[0-9a-f]{16}', "<key>", text)
    stage.note(re.sub(r"\d{13}", lambda found: stage.instant(int(found[0])), text))
    acls, _ = stage.zookeeper.get_acls(path)
    rights = [f"{acl.id.scheme}:{acl.id.id}:{acl.perms}" for acl in acls]
    stage.note(f"version {stat.version}, session {stat.ephemeralOwner}, {rights}")


def note_changes(stage: Stage, token: MadeToken) -> None:
    """Note the number and form of the change nodes of a token."""
    forms = Counter[str]()
    for name in stage.zookeeper.get_children(CHANGES):
        try:
            data, stat = stage.zookeeper.get(f"{CHANGES}/{name}")
        except NoNodeError:  # old ones are purged meanwhile
            continue
        if data == token.token_id.encode():
            forms[f"{re.sub('[0-9]', '9', name)} of session {stat.ephemeralOwner}"] += 1
    stage.note(", ".join(f"{count} x {form}" for form, count in forms.items()))


def nodes_of_changes(stage: Stage) -> None:
    wire = stage.user()
    steps: tuple[Callable[[MadeToken], object], ...] = (
        lambda token: renew(wire, token.hmac, 3_600_000),
        lambda token: expire(wire, token.hmac, 60_000),
        lambda token: expire(wire, token.hmac),
    )
    with unrecorded(wire):
        token = create(wire)
        note_changes(stage, token)
        note_node(stage, token)
        for step in steps:
            step(token)
            note_changes(stage, token)
            note_node(stage, token)


def nodes_of_refusals(stage: Stage) -> None:
    token = stage.token()
    carol, holder, anonymous = stage.user("carol"), stage.holder(token), stage.anonymous()
    before = state(stage.zookeeper)
    for wire in (carol, holder, anonymous):
        with unrecorded(wire):
            renew(wire, token.hmac)
            expire(wire, token.hmac)
            create(wire, renewers=(("Group", "x"),))
    stage.note("nothing" if state(stage.zookeeper) == before else "something")


def state(zookeeper: KazooClient) -> tuple[object, ...]:
    """What every write about a token changes."""
    _, tokens = zookeeper.get(TOKENS)
    return tokens.cversion, max(zookeeper.get_children(CHANGES))


def by_hand(
    owner: tuple[str, str] = ("User", "alice"),
    requester: tuple[str, str] = ("User", "bob"),
    renewers: Sequence[PrincipalTexts] = (("User", "carol"),),
) -> str:
    """A token that was written by hand, as it is described."""
    return entry(owner, requester, renewers)


def read() -> Iterator[Case]:
    for what, (content, described) in READABLE.items():
        yield Case(f"by hand: {what}", reading(content), [described])
    for what, unreadable in UNREADABLE.items():
        yield Case(f"by hand: {what}", skipping(unreadable), (NOTHING, renewed("-1", 62)))
    yield Case("by hand: with a notification", logging_in_by_hand(notified=True), LET_IN)
    yield Case("by hand: without a notification", logging_in_by_hand(notified=False), AT_FIRST, LET_IN, VISIBLE)
    for what, data in ODD_NOTIFICATIONS.items():
        yield Case(f"a notification of {what}", odd_notification(data), ["works"])
    forgotten = (NOTHING, renewed("-1", 62))
    kept = (entry(), renewed("now+86400"))
    yield Case("a known token becomes another", rewriting(of_bob), (OF_BOB, renewed("now+3600")))
    yield Case("a known token is removed", rewriting(None), forgotten)
    for what, damaged in {"empty": b"", "no JSON": b"{"}.items():
        yield Case(f"a known token becomes {what}", rewriting(damaged), forgotten)
    for what in ("an array", "version 4", "no owner"):
        yield Case(f"a known token becomes {what}", rewriting(UNREADABLE[what]), kept, forgotten, AS_STORED)


ODD_NOTIFICATIONS: Final = {
    "an unknown id": b"unknown",
    "nothing": b"",
    "no UTF-8": b"\xff\xfe",
    "a path": b"../x",
    "a slash": b"/",
    "NUL": b"a\0b",
    "500 KB": b"x" * 500_000,
}


def document(**changes: Any) -> dict[str, Any]:
    """A token of version 3 as it may be written by hand; None leaves a field out."""
    now_ms = time.time_ns() // 1_000_000
    fields = {
        "version": 3,
        "owner": "User%3Aalice",
        "tokenRequester": "User%3Abob",
        "renewers": ["User%3Acarol"],
        "issueTimestamp": now_ms,
        "maxTimestamp": now_ms + 7 * DAY_MS,
        "expiryTimestamp": now_ms + DAY_MS,
        "tokenId": "",
    }
    return {name: value for name, value in {**fields, **changes}.items() if value is not None}


Document = Callable[[], dict[str, Any]]
READABLE: Final[dict[str, tuple[Document, str]]] = {
    "version 3": (document, by_hand()),
    "version 2": (lambda: document(version=2, tokenRequester=None), by_hand(requester=("User", "alice"))),
    "version 2 with a requester": (lambda: document(version=2), by_hand(requester=("User", "alice"))),
    "version 1": (lambda: document(version=1, tokenRequester=None), by_hand(requester=("User", "alice"))),
    "names not encoded": (
        lambda: document(owner="User:alice smith", renewers=["User:a/b"]),
        by_hand(("User", "alice smith"), renewers=[("User", "a/b")]),
    ),
    "+ for a blank": (
        lambda: document(owner="User%3Aalice+smith", renewers=["User:a+b"]),
        by_hand(("User", "alice smith"), renewers=[("User", "a b")]),
    ),
    "unknown fields": (lambda: document(more={"a": [1, None]}, other="x"), by_hand()),
    "no renewers": (lambda: document(renewers=[]), by_hand(renewers=())),
    "an owner without name": (lambda: document(owner="User%3A"), by_hand(("User", ""))),
    "an owner without type": (lambda: document(owner="%3Ax"), by_hand(("", "x"))),
    "an owner with two colons": (lambda: document(owner="User:a:b"), by_hand(("User", "a:b"))),
    "an owner of percents that are no UTF-8": (lambda: document(owner="User:a%ff"), by_hand(("User", "a\ufffd"))),
    "an owner outside ASCII": (lambda: document(owner="User:\u00e4"), by_hand(("User", "\u00e4"))),
}
UNREADABLE: Final[dict[str, Document | bytes]] = {
    "version 4": lambda: document(version=4),
    "version 0": lambda: document(version=0),
    "version as text": lambda: document(version="3"),
    "no version": lambda: document(version=None),
    "no owner": lambda: document(owner=None),
    "no requester in version 3": lambda: document(tokenRequester=None),
    "no renewers at all": lambda: document(renewers=None),
    "no expiry": lambda: document(expiryTimestamp=None),
    "no id": lambda: {key: value for key, value in document().items() if key != "tokenId"},
    "an instant as text": lambda: document(maxTimestamp="1700000000000"),
    "an instant as a fraction": lambda: document(maxTimestamp=1700000000000.5),
    "an owner of broken percents": lambda: document(owner="User%3Aa%zz"),
    "an owner without a colon": lambda: document(owner="alice"),
    "a renewer without a colon": lambda: document(renewers=["alice"]),
    "renewers as text": lambda: document(renewers="User:alice"),
    "an array": b"[]",
    "a number": b"3",
    "no JSON": b"{",
    "nothing": b"",
    "no UTF-8": b"\xff\xfe",
}


def put(stage: Stage, content: Document | bytes, token_id: str, *, notified: bool = True) -> None:
    """Write a token by hand, and the notification of it."""
    if not isinstance(content, bytes):
        fields = content()
        data = json.dumps({**fields, "tokenId": token_id} if "tokenId" in fields else fields).encode()
    else:
        data = content
    path = f"{TOKENS}/{token_id}"
    if stage.zookeeper.exists(path):
        stage.zookeeper.set(path, data)
    else:
        stage.zookeeper.create(path, data)
    if notified:
        notify(stage, token_id.encode())


def notify(stage: Stage, data: bytes) -> None:
    stage.zookeeper.create(f"{CHANGES}/token_change_", data, sequence=True)


def token_by_hand(stage: Stage, name: str) -> MadeToken:
    token_id = f"{stage.unique}{name.ljust(5, '-')}A"
    token = MadeToken(token_id, hmac.digest(SECRET_KEY.encode(), token_id.encode(), hashlib.sha512))
    stage.names.add(token.token_id, f"<{name}>")
    stage.names.add(token.hmac, f"<hmac of {name}>")
    return token


def found(wire: Wire, token: MadeToken) -> Any | None:
    with unrecorded(wire):
        tokens = describe(wire, None).tokens
    return next((each for each in tokens if each.token_id == token.token_id), None)


def note_found(wire: Wire, token: MadeToken) -> None:
    described = found(wire, token)
    wire.note(NOTHING if described is None else wire.shown(described))


def reading(content: Document) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        token = token_by_hand(stage, "token")
        wire = stage.user()
        put(stage, content, token.token_id)
        put_another_and_wait(stage, wire)
        note_found(wire, token)

    return talk


def put_another_and_wait(stage: Stage, wire: Wire) -> None:
    """What was written before is processed when a token that is written now is known."""
    other = token_by_hand(stage, "other")
    put(stage, document, other.token_id)
    eventually(lambda: found(wire, other) is not None, WITHIN_S)


def skipping(content: Document | bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        token = token_by_hand(stage, "token")
        wire = stage.user()
        put(stage, content, token.token_id)
        put_another_and_wait(stage, wire)
        note_found(wire, token)
        renew(wire, token.hmac)
        stage.zookeeper.delete(f"{TOKENS}/{token.token_id}")

    return talk


def logging_in_by_hand(*, notified: bool) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        token = token_by_hand(stage, "token")
        put(stage, document, token.token_id, notified=notified)
        if notified:
            put_another_and_wait(stage, stage.user())
        log_in(chosen(stage, SHA_256), SHA_256, token.password, scram.first_of(token))

    return talk


def odd_notification(data: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        notify(stage, data)
        put_another_and_wait(stage, wire)
        wire.works()

    return talk


def of_bob() -> dict[str, Any]:
    return document(owner="User%3Abob", renewers=["User%3Aalice"], tokenRequester="User%3Aalice")


OF_BOB: Final = entry(("User", "bob"), renewers=[("User", "alice")])


def rewriting(new: Document | bytes | None) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        token = stage.token()
        wire = stage.user()
        path = f"{TOKENS}/{token.token_id}"
        if new is None:
            stage.zookeeper.delete(path)
            notify(stage, token.token_id.encode())
        else:
            put(stage, new, token.token_id)
        put_another_and_wait(stage, wire)
        note_found(wire, token)
        renew(wire, token.hmac, 3_600_000 if new is of_bob else -1)
        if stage.zookeeper.exists(path):
            stage.zookeeper.delete(path)
            notify(stage, token.token_id.encode())

    return talk


CASES: Final = tuple(chain(written(), read()))

"""The znodes: exactly what a broker writes and reads, and nothing that comes from outside does harm."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.identity.acls.binding import AccessControlEntry, AclOperation, AclPermissionType
from kafka_dt.tokens.principal import Principal
from kafka_dt.tokens.token import Token
from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.znodes.documents import sanitize
from kafka_dt.zookeeper.znodes.kafka import (
    ClusterIdZnode,
    ConfigChangeZnode,
    TokenChangeZnode,
    TokenZnode,
    UserZnode,
    is_node_name,
    is_sensitive,
)
from kafka_dt_protocol.sasl.scram import ScramCredential, ScramMechanism

ALICE = Principal("User", "alice")
TOKEN = Token(
    token_id="dGhpcyBpcyBhIHRva2VuIQ",
    owner=Principal("User", "a b*c~"),
    requester=ALICE,
    renewers=(Principal("User", "bob"), Principal("User", ""), Principal("User", "bob")),
    issue_timestamp_ms=1_700_000_000_000,
    max_timestamp_ms=1_700_604_800_000,
    expiry_timestamp_ms=1_700_086_400_000,
)
DOCUMENT: dict[str, Any] = {
    "version": 3,
    "owner": "User%3Aa%20b%2Ac%7E",
    "tokenRequester": "User%3Aalice",
    "renewers": ["User%3Abob", "User%3A", "User%3Abob"],
    "issueTimestamp": 1_700_000_000_000,
    "maxTimestamp": 1_700_604_800_000,
    "expiryTimestamp": 1_700_086_400_000,
    "tokenId": "dGhpcyBpcyBhIHRva2VuIQ",
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PRINCIPALS = st.builds(Principal, TEXT.filter(lambda text: ":" not in text), TEXT)
TIMESTAMPS = st.integers(-(2**63), 2**63 - 1)
TOKENS = st.builds(
    Token,
    TEXT,
    PRINCIPALS,
    PRINCIPALS,
    st.lists(PRINCIPALS).map(tuple),
    TIMESTAMPS,
    TIMESTAMPS,
    TIMESTAMPS,
    st.none() | st.from_regex("[0-9a-f]{16}", fullmatch=True),
)


def _encoded(**changes: object) -> bytes:
    return json.dumps({**DOCUMENT, **changes}).encode()


def test_a_token_is_written_with_the_keys_of_a_broker() -> None:
    assert json.loads(TokenZnode.encode(TOKEN)) == DOCUMENT


def test_a_token_is_written_to_the_byte_as_by_a_broker() -> None:
    assert TokenZnode.encode(TOKEN).decode() == (
        '{"issueTimestamp":1700000000000,"renewers":["User%3Abob","User%3A","User%3Abob"],'
        '"tokenRequester":"User%3Aalice","tokenId":"dGhpcyBpcyBhIHRva2VuIQ","owner":"User%3Aa%20b%2Ac%7E",'
        '"expiryTimestamp":1700086400000,"maxTimestamp":1700604800000,"version":3}'
    )


def test_the_key_that_made_a_token_stands_behind_what_a_broker_writes() -> None:
    assert TokenZnode.encode(replace(TOKEN, key_id="0123456789abcdef")) == (
        TokenZnode.encode(TOKEN)[:-1] + b',"keyId":"0123456789abcdef"}'
    )


def test_a_token_says_which_key_made_it_or_not() -> None:
    assert TokenZnode.decode(_encoded(keyId="0123456789abcdef")).key_id == "0123456789abcdef"
    assert TokenZnode.decode(_encoded()).key_id is None


@pytest.mark.parametrize(
    "key_id", ["", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "0123456789abcdeg", " " * 16, None, 5]
)
def test_a_key_id_of_another_form_is_refused(key_id: object) -> None:
    with pytest.raises(InvalidZnode, match="keyId"):
        TokenZnode.decode(_encoded(keyId=key_id))


def test_a_token_is_read() -> None:
    assert TokenZnode.decode(_encoded()) == TOKEN


@pytest.mark.parametrize("version", [1, 2])
def test_in_older_versions_the_requester_is_the_owner(version: int) -> None:
    assert TokenZnode.decode(_encoded(version=version)) == replace(TOKEN, requester=TOKEN.owner)
    without = {key: value for key, value in DOCUMENT.items() if key != "tokenRequester"} | {"version": version}
    assert TokenZnode.decode(json.dumps(without).encode()).requester == TOKEN.owner


@pytest.mark.parametrize("text", ["Us:er:x", ":x", "User:*"])
def test_the_owner_in_a_znode_is_the_principal_that_an_acl_of_the_same_text_names(text: str) -> None:
    """A type that is read never contains a colon, however the znode is encoded; else a Deny would not cover it."""
    for written in (text, sanitize(text), text.replace(":", "%3A", 1), text.replace("x", "%78")):
        owner = TokenZnode.decode(json.dumps({**DOCUMENT, "owner": written}).encode()).owner
        denial = AccessControlEntry(Principal.parse(text), "*", AclOperation.ALL, AclPermissionType.DENY)
        assert ":" not in owner.type
        assert denial.covers(owner, "10.0.0.1")


def test_names_that_are_not_encoded_and_unknown_fields_are_read() -> None:
    token = TokenZnode.decode(_encoded(owner="User:a+b:c", renewers=["User:x"], unknown={"a": 1}))
    assert token.owner == Principal("User", "a b:c")
    assert token.renewers == (Principal("User", "x"),)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 0},
        {"version": 4},
        {"version": "3"},
        {"version": 3.0},
        {"owner": "alice"},
        {"owner": ""},
        {"owner": None},
        {"owner": "User%3"},
        {"tokenRequester": None},
        {"renewers": None},
        {"renewers": ["bob"]},
        {"renewers": "User:bob"},
        {"issueTimestamp": "1700000000000"},
        {"maxTimestamp": 2**63},
        {"expiryTimestamp": None},
        {"tokenId": 5},
    ],
)
def test_a_token_that_a_broker_skips_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidZnode):
        TokenZnode.decode(_encoded(**change))


@pytest.mark.parametrize("key", sorted(DOCUMENT))
def test_a_token_with_a_missing_field_is_refused(key: str) -> None:
    with pytest.raises(InvalidZnode):
        TokenZnode.decode(json.dumps({name: value for name, value in DOCUMENT.items() if name != key}).encode())


@given(TOKENS)
def test_every_token_comes_back(token: Token) -> None:
    assert TokenZnode.decode(TokenZnode.encode(token)) == token


@given(st.binary())
def test_any_bytes_are_a_token_or_refused(data: bytes) -> None:
    with pytest.raises(InvalidZnode):
        TokenZnode.decode(data)


def test_a_change_is_the_bare_id() -> None:
    assert TokenChangeZnode.encode("abc") == b"abc"
    assert TokenChangeZnode.decode(b"abc") == "abc"
    assert TokenChangeZnode.decode(b"\xff") == "\ufffd"


@pytest.mark.parametrize("name", ["a", "dGhpcyBpcyBhIHRva2VuIQ", "a b", "...", "é", "x" * 1024])
def test_names_of_znodes(name: str) -> None:
    assert is_node_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/", "\x00", "a\n", "\x7f", "\ud800", "\uf000", "\uffff", "a🐘", "\U0010ffff", "x" * 1025],
)
def test_what_cannot_be_a_znode_is_no_name(name: str) -> None:
    assert not is_node_name(name)


@pytest.mark.parametrize(
    ("path", "sensitive"),
    [
        ("/delegation_token/tokens", True),
        ("/delegation_token/tokens/abc", True),
        ("/delegation_token", False),
        ("/delegation_token/token_changes/token_change_0000000001", False),
        ("/config/users/alice", True),
        ("/config/changes", False),
        ("/cluster/id", False),
    ],
)
def test_what_is_sensitive_is_what_a_broker_hides(path: str, *, sensitive: bool) -> None:
    assert is_sensitive(path) is sensitive


SALT, STORED_KEY, SERVER_KEY = b"salt" * 4, b"k" * 32, b"s" * 32
CREDENTIAL = ScramCredential(SALT, STORED_KEY, SERVER_KEY, 8192)
CREDENTIAL_TEXT = (
    f"salt={base64.b64encode(SALT).decode()},stored_key={base64.b64encode(STORED_KEY).decode()},"
    f"server_key={base64.b64encode(SERVER_KEY).decode()},iterations=8192"
)


def _user(text: str) -> bytes:
    return json.dumps({"version": 1, "config": {"SCRAM-SHA-256": text, "producer_byte_rate": "1024"}}).encode()


def test_a_users_credentials_are_written_as_a_broker_does() -> None:
    assert json.loads(UserZnode.encode({ScramMechanism.SHA_256: CREDENTIAL})) == {
        "version": 1,
        "config": {"SCRAM-SHA-256": CREDENTIAL_TEXT},
    }


def test_a_users_credentials_are_read() -> None:
    assert UserZnode.decode(_user(CREDENTIAL_TEXT)) == {ScramMechanism.SHA_256: CREDENTIAL}


def test_parts_in_another_order_and_without_padding_are_read() -> None:
    parts = [part.rstrip("=") for part in CREDENTIAL_TEXT.split(",")]
    assert UserZnode.decode(_user(",".join(reversed(parts)))) == {ScramMechanism.SHA_256: CREDENTIAL}


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version":1,"config":{}}', b'{"version":1,"config":null}'])
def test_a_user_without_credentials_has_none(data: bytes) -> None:
    assert UserZnode.decode(data) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word",
        "=",
        CREDENTIAL_TEXT.replace("salt=", "salz="),
        CREDENTIAL_TEXT + ",more=1",
        CREDENTIAL_TEXT.replace("8192", "many"),
        CREDENTIAL_TEXT.replace("8192", "0"),
        CREDENTIAL_TEXT.replace("stored_key=", "stored_key=*"),
    ],
)
def test_a_credential_that_is_not_readable_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidZnode) as caught:
        UserZnode.decode(_user(text))
    assert "c2FsdH" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_change_of_a_user_names_it() -> None:
    assert ConfigChangeZnode.encode("alice%40x") == b'{"version":2,"entity_path":"users/alice%40x"}'
    assert ConfigChangeZnode.decode(b'{"version":2,"entity_path":"users/alice%40x"}') == "alice%40x"


@pytest.mark.parametrize(
    "document",
    [
        {"version": 1, "entity_type": "topics", "entity_name": "a"},
        {"version": 2, "entity_path": "topics/a"},
        {"version": 2, "entity_path": "users/<default>"},
        {"version": 2, "entity_path": "users/alice/clients/c"},
        {"version": 2, "entity_path": "users/.."},
        {"version": 2, "entity_path": "users"},
    ],
)
def test_a_change_of_anything_else_names_no_user(document: dict[str, object]) -> None:
    assert ConfigChangeZnode.decode(json.dumps(document).encode()) is None


@pytest.mark.parametrize(
    "data", [b"", b"x", b"{}", b'{"version":3}', b'{"version":2}', b'{"version":2,"entity_path":1}']
)
def test_a_change_that_is_not_readable_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidZnode):
        ConfigChangeZnode.decode(data)


def test_the_cluster_id() -> None:
    assert json.loads(ClusterIdZnode.encode("abc")) == {"version": "1", "id": "abc"}
    assert ClusterIdZnode.decode(b'{"version":"1","id":"abc"}') == "abc"
    with pytest.raises(InvalidZnode, match="id is missing"):
        ClusterIdZnode.decode(b'{"version":"1"}')

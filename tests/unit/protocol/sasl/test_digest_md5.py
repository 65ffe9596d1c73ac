"""The server side of DIGEST-MD5: the exchanges of RFC 2831, an independent client, the grammar, hostile messages."""

from __future__ import annotations

import hashlib
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from puresasl.client import SASLClient

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    Challenge,
    CredentialRequest,
    DigestServer,
    Failure,
    MalformedDigestMessage,
    StepResult,
    Success,
)
from kafka_dt_protocol.sasl.digest_md5 import MAX_MESSAGE_BYTES, parse_directives, parse_response, quoted

NONCE = "OA6MG9tEQGm2hh"
NAME = "qe9NVyTyRGKwPVvXpmXvyQ"
PASSWORD = "aG1hYw=="

IMAP = (
    b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,'
    b'cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",'
    b"response=d388dad90d4bbd760a152321f2143af7,qop=auth"
)
ACAP = (
    b'username="chris",realm="elwood.innosoft.com",nonce="OA9BSXrbuRhWay",nc=00000001,cnonce="OA9BSuZWMSpW8m",'
    b'digest-uri="acap/elwood.innosoft.com",response=6084c6db3fede7352c551284490fd0fc,qop=auth'
)


def directives(**changes: str | None) -> dict[str, str]:
    """Give the directives of a right response to NONCE, written out, with changes; None takes one away."""
    every = {
        "username": quoted(NAME),
        "realm": '"kafka"',
        "nonce": quoted(NONCE),
        "nc": "00000001",
        "cnonce": '"client"',
        "digest_uri": '"kafka/localhost"',
        **changes,
    }
    return {name.replace("_", "-"): value for name, value in every.items() if value is not None}


def message(**changes: str | None) -> bytes:
    """Give a response that is right except for the changes."""
    return message_with(PASSWORD, **changes)


def message_with(password: str, /, **changes: str | None) -> bytes:
    start = ",".join(f"{name}={value}" for name, value in directives(**changes).items())
    if "response" in changes:
        return start.encode()
    unproved = parse_response(f"{start},response={'0' * 32}".encode())
    return start.encode() + b",response=" + unproved.expected_response(password)


def step(response: bytes, **of_server: str) -> tuple[DigestServer, StepResult]:
    server = DigestServer(of_server.pop("nonce", NONCE), **of_server)
    assert isinstance(server.step(b""), Challenge)
    return server, server.step(response)


def md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def refused(response: bytes) -> str:
    """Give the words for the log; the client has the generic ones."""
    server, outcome = step(response)
    assert isinstance(outcome, Failure)
    assert outcome.message is None
    with pytest.raises(LocalProtocolError):
        server.step(response)
    return outcome.detail


@pytest.mark.parametrize(
    ("nonce", "service", "response", "rspauth"),
    [
        pytest.param(NONCE, "imap", IMAP, b"rspauth=ea40f60335c427b5527b84dbabcdfffd", id="IMAP4"),
        pytest.param("OA9BSXrbuRhWay", "acap", ACAP, b"rspauth=2f0b3d7c3c2e486600ef710726aa2eae", id="ACAP"),
    ],
)
def test_the_exchanges_of_the_rfc_are_understood(nonce: str, service: str, response: bytes, rspauth: bytes) -> None:
    server, outcome = step(response, nonce=nonce, service=service, realm="elwood.innosoft.com")
    assert outcome == CredentialRequest("chris", token=True)
    assert server.resume(["secret"]) == Success(rspauth, "chris")


def test_the_challenge_has_one_realm_and_offers_authentication_alone() -> None:
    assert DigestServer(NONCE).step(b"") == Challenge(
        b'realm="kafka",nonce="OA6MG9tEQGm2hh",qop="auth",charset=utf-8,algorithm=md5-sess'
    )


def test_an_independent_client_logs_in_and_believes_the_server() -> None:
    client = SASLClient("node.example.com", "kafka", mechanism="DIGEST-MD5", username=NAME, password=PASSWORD)
    server = DigestServer(NONCE)
    challenge = server.step(b"")
    assert isinstance(challenge, Challenge)
    assert server.step(client.process(challenge.message)) == CredentialRequest(NAME, token=True)
    success = server.resume([PASSWORD])
    assert isinstance(success, Success)
    client.process(success.message)
    assert client.complete


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"qop": "auth"}, id="quality of protection"),
        pytest.param({"qop": '"AUTH"'}, id="quality of protection in quotes and capitals"),
        pytest.param({"charset": "utf-8", "maxbuf": "65536", "cipher": '"3des"'}, id="what matters to others"),
        pytest.param({"authzid": quoted(NAME)}, id="itself as authorization id"),
        pytest.param({"username": '"\\q\\e9NVyTyRGKwPVvXpmXvyQ"'}, id="escapes"),
        pytest.param({"digest_uri": '"KAFKA/node-1.example.com/service.example.com"'}, id="a service name"),
        pytest.param({"digest_uri": '"kafka/0:0:0:0:0:0:0:1"'}, id="an IPv6 host"),
        pytest.param({"digest_uri": '"kafka/kafka_1"'}, id="a container as host"),
        pytest.param({"future": '"a, b=\\"c\\""'}, id="something unknown"),
    ],
)
def test_a_right_response_logs_in(changes: dict[str, str | None]) -> None:
    server, outcome = step(message(**changes))
    assert outcome == CredentialRequest(NAME, token=True)
    assert isinstance(server.resume([PASSWORD]), Success)


def test_white_space_folds_empty_elements_and_letter_case_change_nothing() -> None:
    tight = message().decode()
    loose = ", ,\t,  ".join(each.replace("=", " =\r\n\t ", 1) + " " for each in tight.split(","))
    server, outcome = step(f",{loose.replace('username', 'UserName')},".encode())
    assert outcome == CredentialRequest(NAME, token=True)
    assert isinstance(server.resume([PASSWORD]), Success)


def test_any_of_several_passwords_logs_in() -> None:
    for number, password in enumerate(("new", "old")):
        response = message_with(password)
        server, _ = step(response)
        rspauth = b"rspauth=" + parse_response(response).rspauth(password)
        assert server.resume(["new", "old"]) == Success(rspauth, NAME, proved=number)


@pytest.mark.parametrize("passwords", [["other"], ["other", "another"], []])
def test_a_wrong_password_gets_the_generic_words(passwords: list[str]) -> None:
    server, _ = step(message())
    assert server.resume(passwords) == Failure("digest-response: response is wrong")
    with pytest.raises(LocalProtocolError):
        server.resume([PASSWORD])


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"nonce": '"OA6MG9tEQGm2hH"'}, "nonce"),
        ({"nc": "00000002"}, "nc"),
        ({"nc": "1"}, "nc"),
        ({"realm": '"Kafka"'}, "realm"),
        ({"realm": '""'}, "realm"),
        ({"qop": "auth-int"}, "qop"),
        ({"qop": "auth-conf"}, "qop"),
        ({"digest_uri": '"zookeeper/localhost"'}, "digest-uri"),
        ({"digest_uri": '"kafka"'}, "digest-uri"),
        ({"digest_uri": '"kafka/"'}, "digest-uri"),
        ({"digest_uri": '"kafka/a/b/c"'}, "digest-uri"),
        ({"digest_uri": '"kafka/a b"'}, "digest-uri"),
        ({"cnonce": '""'}, "cnonce"),
        ({"authzid": '"another"'}, "authzid"),
        ({"authzid": '""'}, "authzid"),
    ],
)
def test_what_is_not_of_this_exchange_is_refused_before_the_name_is_looked_up(
    changes: dict[str, str | None], name: str
) -> None:
    assert refused(message(**changes)) == f"digest-response: {name} is not one of this exchange"


@pytest.mark.parametrize("name", ["username", "realm", "nonce", "nc", "cnonce", "digest_uri", "response"])
def test_a_required_directive_has_to_be_there_once(name: str) -> None:
    directive = name.replace("_", "-")
    missing: dict[str, str | None] = {"response": "0" * 32, name: None}
    assert refused(message(**missing)) == f"digest-response: no {directive}"
    value = directives(response="0" * 32)[directive]
    assert refused(message() + f",{directive.upper()}={value}".encode()) == "digest-response: a directive comes twice"


@pytest.mark.parametrize(
    "broken",
    [
        b"\0",
        b"no equals sign",
        b'username="no end',
        b'username="a\\',
        b'username="a\0b"',
        b'username="a\nb"',
        b'username="a\r\nb"',
        b'username="a\xff"b',
        b"username=a b",
        b"username=a;nc=1",
        b"=a",
        b"username=",
        b"username==a",
        b'"username"=a',
        b"username=a\r\n",
    ],
)
def test_what_does_not_follow_the_grammar_is_refused(broken: bytes) -> None:
    assert refused(broken).startswith(("digest-response: an element is not", "digest-response: no comma"))
    with pytest.raises(MalformedDigestMessage):
        parse_response(message() + b"," + broken)


@pytest.mark.parametrize("response", ["0" * 31, "0" * 33, "A" * 32, quoted("g" * 32)])
def test_a_proof_is_32_hex_digits_in_lower_case(response: str) -> None:
    assert refused(message(response=response)) == "digest-response: response is not 32 hex digits"


def test_a_long_message_is_refused() -> None:
    for length, outcome in ((MAX_MESSAGE_BYTES, CredentialRequest), (MAX_MESSAGE_BYTES + 1, Failure)):
        padding = b"x" * (length - len(message()) - len(",x="))
        assert isinstance(step(message() + b",x=" + padding)[1], outcome)


def test_a_message_before_the_challenge_is_no_login_with_an_older_nonce() -> None:
    server = DigestServer(NONCE)
    assert isinstance(server.step(message()), Failure)
    with pytest.raises(LocalProtocolError):
        server.step(b"")


@pytest.mark.parametrize(
    ("sent", "charset", "name", "hashed"),
    [
        pytest.param(b"andr\xe9", None, "andré", b"andr\xe9", id="ISO 8859-1 as sent"),
        pytest.param("andré".encode(), "utf-8", "andré", b"andr\xe9", id="UTF-8 that ISO 8859-1 has"),
        pytest.param("łukasz".encode(), "UTF-8", "łukasz", "łukasz".encode(), id="UTF-8 that ISO 8859-1 has not"),
    ],
)
def test_a_name_is_hashed_in_iso_8859_1_if_that_has_its_characters(
    sent: bytes, charset: str | None, name: str, hashed: bytes
) -> None:
    parsed = parse_response(message(username=None, charset=charset, response="0" * 32) + b',username="' + sent + b'"')
    assert parsed.username == name
    a1 = md5(hashed + b":kafka:pass") + f":{NONCE}:client".encode()
    a2 = md5(b"AUTHENTICATE:kafka/localhost").hex()
    text = f"{md5(a1).hex()}:{NONCE}:00000001:client:auth:{a2}"
    assert parsed.expected_response("pass") == md5(text.encode()).hex().encode()


@pytest.mark.parametrize(("charset", "username"), [("iso-8859-1", b"a"), ("utf-8", b"\xff")])
def test_another_charset_and_broken_utf8_are_refused(charset: str, username: bytes) -> None:
    rest = message(username=None, charset=charset, response="0" * 32)
    assert "utf-8" in refused(rest + b',username="' + username + b'"').lower()


def test_nothing_of_the_client_is_repeated_to_the_log_and_no_proof_is_shown() -> None:
    assert "hunter2" not in refused(b'hunter2="\0"')
    assert "hunter2" not in refused(message(realm='"hunter2"'))
    parsed = parse_response(message())
    assert parsed.response.decode() not in repr(parsed)


def test_driving_it_in_the_wrong_order_is_our_mistake() -> None:
    with pytest.raises(LocalProtocolError):
        DigestServer("a,b")
    server = DigestServer(NONCE)
    with pytest.raises(LocalProtocolError):
        server.resume([PASSWORD])
    server.step(b"")
    server.step(message())
    with pytest.raises(LocalProtocolError):
        server.step(message())


@given(st.binary(max_size=200) | st.text('",=\\ \tanc\r\n\0é', max_size=60).map(str.encode))
def test_any_bytes_end_in_a_failure(response: bytes) -> None:
    assert isinstance(step(response)[1], Failure)


TOKEN_CHARACTERS = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
GAPS = st.lists(st.sampled_from([" ", "\t", "\r\n "]), max_size=3).map("".join)
TEXTS = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=20)


@given(st.dictionaries(st.text("abcdefgh-", min_size=1, max_size=8), TEXTS, max_size=6), st.data())
def test_whatever_is_written_by_the_grammar_is_read_back(values: dict[str, str], data: st.DataObject) -> None:
    written = []
    for name, value in values.items():
        bare = value and set(value) <= set(TOKEN_CHARACTERS) and data.draw(st.booleans())
        g1, g2, g3, g4 = (data.draw(GAPS) for _ in range(4))
        written.append(f"{g1}{name}{g2}={g3}{value if bare else quoted(value)}{g4}")
    text = data.draw(st.sampled_from([",", " , ,", ",,,"])).join(written)
    names = [name.encode() for name in values]
    read = parse_directives("digest-response", text.encode("latin-1"), names)
    assert read == {name.encode(): value.encode("latin-1") for name, value in values.items()}


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_never_logs_in_as_somebody_else(position: int, difference: int) -> None:
    changed = bytearray(message(authzid=quoted(NAME)))
    changed[position % len(changed)] ^= difference
    server, outcome = step(bytes(changed))
    if isinstance(outcome, CredentialRequest):
        final = server.resume([PASSWORD])
        # Some changes mean nothing: letter case of a name, the name of something that is not known.
        assert isinstance(final, Failure) or outcome.name == NAME

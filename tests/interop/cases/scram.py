"""SCRAM with a token: who is let in, by which messages, and for how long.

The broker's flaws are rows with a second transcript: there kafka-dt follows RFC 5802, or answers alike for names that
exist and names that do not.

Source: KIP-48, RFC 5802; org.apache.kafka.common.security.scram.internals.ScramSaslServer,
org.apache.kafka.common.security.scram.internals.ScramFormatter,
org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from kafka_dt_protocol.sasl import ScramMechanism, derive_keys
from kafka_dt_protocol.sasl.scram import client_proof
from tests.interop.cases.sasl import chosen
from tests.support.protocol.conversation import Case, MadeToken, Stage, create, expire, renew, unrecorded
from tests.support.protocol.wire import Wire

NONCE: Final = b"fyko+d2lbbFgONRv9qkxdawL"
SHA_256: Final = ScramMechanism.SHA_256
SHA_512: Final = ScramMechanism.SHA_512

GENERIC: Final = "Authentication failed during {}authentication due to invalid credentials with SASL mechanism {}"
CHALLENGED: Final = "SaslAuthenticate v2: error_code=0 error_message='' auth_bytes=<r=,s=,i=> session_lifetime=0"
WELCOME: Final = "SaslAuthenticate v2: error_code=0 error_message='' auth_bytes=<v=> session_lifetime=86400"
LET_IN: Final = (CHALLENGED, WELCOME, "works")
WRONG_AUTHZID: Final = "Authentication failed: Client requested an authorization id that is different from username"

SAME_PATH: Final = "the step at which a login fails must not tell a client whether a name exists"
WITHOUT_EXTENSION: Final = "most clients cannot send the extension, and a token id cannot be confused with a user name"
BY_THE_RFC: Final = "RFC 5802 defines what the proof covers, and requires a server to check the nonce, c= and m="
CLEAR_ANSWER: Final = "every wrong proof gets the same answer"
KEEP_TYPE: Final = "Group:x and User:x are two principals with different rights"
ENDED: Final = "a token that expired or was deleted must not log in"


def refused(message: str) -> str:
    return f"SaslAuthenticate v2: error_code=58 error_message={message!r} auth_bytes=b'' session_lifetime=0"


def generic(mechanism: str = SHA_256, prefix: str = "") -> str:
    return refused(GENERIC.format(prefix, mechanism))


AT_FIRST: Final = (generic(), "closed")
AT_LAST: Final = (CHALLENGED, generic(), "closed")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a client has said and heard when it makes its last message."""

    mechanism: ScramMechanism
    password: str
    first: bytes
    challenge: bytes

    @property
    def bare(self) -> bytes:
        """The client-first without its GS2 header."""
        return self.first.split(b",", 2)[2]

    @property
    def gs2(self) -> bytes:
        """The GS2 header."""
        return self.first[: -len(self.bare)]

    @property
    def nonce(self) -> bytes:
        """Of both."""
        return self.challenge.split(b",")[0][2:]

    def proof(self, text: bytes, bare: bytes | None = None) -> bytes:
        """The proof for a client-final without proof."""
        _, salt, iterations = (part[2:] for part in self.challenge.split(b","))
        keys = derive_keys(self.mechanism, self.password, base64.b64decode(salt), int(iterations))
        covered = b",".join((self.bare if bare is None else bare, self.challenge, text))
        return base64.b64encode(client_proof(self.mechanism, keys, covered))

    def final(self, text: bytes | None = None, covered: bytes | None = None, bare: bytes | None = None) -> bytes:
        """A client-final: its text, and what the proof covers if that is not the text."""
        said = self.text() if text is None else text
        return said + b",p=" + self.proof(said if covered is None else covered, bare)

    def text(self, nonce: bytes | None = None, binding: bytes | None = None, extension: bytes = b"") -> bytes:
        """A client-final without proof."""
        bound = base64.b64encode(self.gs2) if binding is None else binding
        return b"c=" + bound + b",r=" + (self.nonce if nonce is None else nonce) + extension


MakeFinal = Callable[[Attempt], bytes]


def by_the_book(attempt: Attempt) -> bytes:
    return attempt.final()


def first_of(token: MadeToken, gs2: str = "n,,", extensions: str = ",tokenauth=true") -> bytes:
    """A client-first; `{}` in its parts stands for the token id."""
    name = token.token_id
    return (gs2.format(name) + f"n={name},r={NONCE.decode()}" + extensions).encode()


def log_in(
    wire: Wire,
    mechanism: ScramMechanism,
    password: str,
    first: bytes,
    final: MakeFinal = by_the_book,
    *,
    version: int = 2,
) -> Any:
    """Go through an exchange whose handshake is done, as far as it goes; the last answer."""
    answer = wire.authenticate(first, version)
    if not answer.error_code.value:
        attempt = Attempt(mechanism, password, first, answer.auth_bytes)
        answer = wire.authenticate(final(attempt), version)
    (wire.ends if answer.error_code.value else wire.works)()
    return answer


def logging_in(
    first: Callable[[MadeToken], bytes] = first_of,
    final: MakeFinal = by_the_book,
    mechanism: ScramMechanism = SHA_256,
    password: Callable[[MadeToken], str] = lambda token: token.password,
) -> Callable[[Stage], None]:
    """Log in with a new token of alice."""

    def talk(stage: Stage) -> None:
        token = stage.token()
        log_in(chosen(stage, mechanism), mechanism, password(token), first(token), final)

    return talk


def with_extensions(extensions: str, gs2: str = "n,,") -> Callable[[MadeToken], bytes]:
    return lambda token: first_of(token, gs2, extensions)


def good() -> Iterator[Case]:
    yield Case("SCRAM-SHA-256 with a token", logging_in(), LET_IN)
    yield Case("SCRAM-SHA-512 with a token", logging_in(mechanism=SHA_512), LET_IN)
    for value in ("TRUE", "True"):
        yield Case(f"tokenauth={value}", logging_in(with_extensions(f",tokenauth={value}")), LET_IN)
    yield Case("authorization id of the token", logging_in(with_extensions(",tokenauth=true", "n,a={},")), LET_IN)
    for other in ("alice", "bob"):
        first = with_extensions(",tokenauth=true", f"n,a={other},")
        yield Case(f"authorization id {other}", logging_in(first), (refused(WRONG_AUTHZID), "closed"))


def passwords() -> Iterator[Case]:
    wrong: dict[str, Callable[[MadeToken], str]] = {
        "hex": lambda token: token.hmac.hex(),
        "base64 without padding": lambda token: token.password.rstrip("="),
        "URL-safe base64": lambda token: base64.urlsafe_b64encode(token.hmac + b"\xff\xff\xff").decode(),
        "the token id": lambda token: token.token_id,
        "something else": lambda _: "something else",
    }
    for what, password in wrong.items():
        yield Case(f"token password: {what}", logging_in(password=password), AT_LAST)
    for mechanism in ScramMechanism:
        yield Case(
            f"{mechanism} with an unknown token",
            logging_in(lambda _: b"n,,n=AAAAAAAAAAAAAAAAAAAAAA,r=" + NONCE + b",tokenauth=true", mechanism=mechanism),
            (generic(mechanism), "closed"),
            (CHALLENGED, generic(mechanism), "closed"),
            SAME_PATH,
        )
        yield Case(
            f"{mechanism} with an unknown user",
            logging_in(lambda _: b"n,,n=nobody,r=" + NONCE, mechanism=mechanism),
            (generic(mechanism), "closed"),
            (CHALLENGED, generic(mechanism), "closed"),
            SAME_PATH,
        )


def extensions() -> Iterator[Case]:
    yield Case("no tokenauth", logging_in(with_extensions("")), AT_FIRST, LET_IN, WITHOUT_EXTENSION)
    for value in ("false", "yes", "1", " true", "truee"):
        first = with_extensions(f",tokenauth={value}")
        yield Case(f"tokenauth={value}", logging_in(first), AT_FIRST, AT_LAST, SAME_PATH)
    first = with_extensions(",TokenAuth=true")
    yield Case("TokenAuth=true", logging_in(first), AT_FIRST, LET_IN, WITHOUT_EXTENSION)
    for extension in (
        "tokenauth",
        "tokenauth=",
        "token1=true",
        "tokenauth=true,x",
        "tokenauth=true,",
        ",tokenauth=true",
    ):
        yield Case(f"extension {extension!r}", logging_in(with_extensions("," + extension)), AT_FIRST)
    # The order in which a Java HashMap holds them.
    yield Case("tokenauth=true,foo=bar", logging_in(with_extensions(",tokenauth=true,foo=bar")), LET_IN)
    reverse = with_extensions(",foo=bar,tokenauth=true")
    yield Case("foo=bar,tokenauth=true", logging_in(reverse), AT_LAST, LET_IN, BY_THE_RFC)


def first_messages() -> Iterator[Case]:
    def name(text: str) -> Callable[[MadeToken], bytes]:
        return lambda _: f"n,,n={text},r={NONCE.decode()},tokenauth=true".encode()

    broken: dict[str, Callable[[MadeToken], bytes]] = {
        "GS2 flag y": with_extensions(",tokenauth=true", "y,,"),
        "channel binding": with_extensions(",tokenauth=true", "p=tls-unique,,"),
        "no GS2 header": with_extensions(",tokenauth=true", ""),
        "GS2 flag alone": with_extensions(",tokenauth=true", "n,"),
        "empty authorization id": with_extensions(",tokenauth=true", "n,a=,"),
        "name with NUL": name("a\0b"),
        "name that is not ASCII": name("Zoë"),
        "name with =": name("a=b"),
        "name with =2c": name("a=2cb"),
        "empty name": name(""),
        "no name": lambda _: b"n,,r=" + NONCE + b",tokenauth=true",
        "no nonce": lambda token: f"n,,n={token.token_id},tokenauth=true".encode(),
        "empty nonce": lambda token: f"n,,n={token.token_id},r=,tokenauth=true".encode(),
        "nonce with a blank": lambda token: f"n,,n={token.token_id},r=a b,tokenauth=true".encode(),
        "nonce not ASCII": lambda token: f"n,,n={token.token_id},r=ä,tokenauth=true".encode(),
        "name and nonce exchanged": lambda token: f"n,,r=abc,n={token.token_id},tokenauth=true".encode(),
        "a line end": lambda token: first_of(token) + b"\n",
        "a blank in front": lambda token: b" " + first_of(token),
    }
    for what, first in broken.items():
        yield Case(f"client-first: {what}", logging_in(first), AT_FIRST)
    for text in ("a=2Cb", "a=3Db", "a b", "ANONYMOUS"):
        yield Case(f"client-first: unknown name {text}", logging_in(name(text)), AT_FIRST, AT_LAST, SAME_PATH)

    def mandatory(token: MadeToken) -> bytes:
        return first_of(token).replace(b"n=", b"m=x,n=", 1)

    without_it = logging_in(mandatory, lambda attempt: attempt.final(bare=attempt.bare.removeprefix(b"m=x,")))
    yield Case("m=x, left out of the proof", without_it, LET_IN, AT_FIRST, BY_THE_RFC)
    yield Case("m=x, with a proof by the RFC", logging_in(mandatory), AT_LAST, AT_FIRST, BY_THE_RFC)


def last_messages() -> Iterator[Case]:
    def flipped(attempt: Attempt) -> bytes:
        proof = bytearray(base64.b64decode(attempt.proof(attempt.text())))
        proof[0] ^= 1
        return attempt.text() + b",p=" + base64.b64encode(proof)

    wrong: dict[str, MakeFinal] = {
        "another nonce": lambda a: a.final(a.text(nonce=b"x" * len(a.nonce))),
        "the client's nonce alone": lambda a: a.final(a.text(nonce=NONCE)),
        "the server's nonce alone": lambda a: a.final(a.text(nonce=a.nonce.removeprefix(NONCE))),
        "a part of the nonce": lambda a: a.final(a.text(nonce=a.nonce[:-1])),
        "more behind the nonce": lambda a: a.final(a.text(nonce=a.nonce + b"x")),
        "c= that is no base64": lambda a: a.final(a.text(binding=b"bi*s")),
        "no c=": lambda a: a.final(b"r=" + a.nonce),
        "a proof with one bit flipped": flipped,
        "a proof that is no base64": lambda a: a.text() + b",p=???",
        "a proof without padding": lambda a: a.final().rstrip(b"="),
        "no proof": lambda a: a.text(),
        "a line end": lambda a: a.final() + b"\n",
        "nothing": lambda _: b"",
        "the proof of a stranger": lambda a: a.text() + b",p=" + base64.b64encode(hashlib.sha256(b"x").digest()),
    }
    for what, final in wrong.items():
        yield Case(f"client-final: {what}", logging_in(final=final), AT_LAST)
    yield Case(
        "client-final: the client's nonce twice", logging_in(final=lambda a: a.final(a.text(NONCE + a.nonce))), LET_IN
    )
    let_in: dict[str, MakeFinal] = {
        "more before the nonce": lambda a: a.final(a.text(nonce=b"x" + a.nonce)),
        "c= of another header": lambda a: a.final(a.text(binding=base64.b64encode(b"y,,"))),
        "empty c=": lambda a: a.final(a.text(binding=b"")),
        "an extension left out of the proof": lambda a: a.final(a.text(extension=b",x=y"), covered=a.text()),
    }
    for what, final in let_in.items():
        yield Case(f"client-final: {what}", logging_in(final=final), LET_IN, AT_LAST, BY_THE_RFC)
    with_extension: dict[str, MakeFinal] = {"an extension": lambda a: a.final(a.text(extension=b",x=y"))}
    for what, final in with_extension.items():
        yield Case(f"client-final: {what}", logging_in(final=final), AT_LAST, LET_IN, BY_THE_RFC)
    for size in (0, 1, 31, 33, 64):
        proof = base64.b64encode(bytes(size))
        yield Case(
            f"client-final: a proof of {size} bytes",
            logging_in(final=proving(proof)),
            (CHALLENGED, "closed"),
            AT_LAST,
            CLEAR_ANSWER,
        )


def proving(proof: bytes) -> MakeFinal:
    return lambda attempt: attempt.text() + b",p=" + proof


def lives() -> Iterator[Case]:
    yield Case("by SaslAuthenticate v0", by_version(0), tuple(_without_lifetime(line) for line in LET_IN))
    yield Case("by SaslAuthenticate v1", by_version(1), tuple(line.replace("v2", "v1") for line in LET_IN))
    for mechanism in ScramMechanism:
        yield Case(f"the iterations of a token, {mechanism}", iterations(mechanism), ["i=4096"])
    yield Case("by bare messages", by_bare_messages, ("bare <r=,s=,i=>", "bare <v=>", "works"))
    yield Case("after a renewal", after_a_renewal, (CHALLENGED, WELCOME.replace("86400", "3600"), "works"))
    yield Case("a token of another user", of_another_user, (*LET_IN, token_login("User")))
    yield Case(
        "a token of a group", of_a_group, (*LET_IN, token_login("User")), (*LET_IN, token_login("Group")), KEEP_TYPE
    )
    yield Case("a deleted token", deleted, AT_FIRST, AT_LAST, SAME_PATH)
    yield Case("a token deleted during the login", deleted_during_login, LET_IN, AT_LAST, ENDED)
    let_in_for_nothing = (CHALLENGED, WELCOME.replace("86400", "0"), "closed")
    yield Case("an expired token", expired, let_in_for_nothing, AT_LAST, ENDED)


def token_login(principal_type: str) -> str:
    """What a create gets on a connection that logged in with a token of x: it says who we are."""
    parts = ("principal", "token_requester_principal")
    names = " ".join(f"{part}_type={principal_type!r} {part}_name='x'" for part in parts)
    times = "issue_timestamp=-1 expiry_timestamp=-1 max_timestamp=-1"
    return f"CreateDelegationToken v3: error_code=64 {names} {times} token_id='' hmac=b''"


def _without_lifetime(line: str) -> str:
    return line.replace("v2", "v0").split(" session_lifetime")[0]


def by_version(version: int) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        token = stage.token()
        log_in(chosen(stage, SHA_256), SHA_256, token.password, first_of(token), version=version)

    return talk


def iterations(mechanism: ScramMechanism) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = chosen(stage, mechanism)
        with unrecorded(wire):
            challenge = wire.authenticate(first_of(stage.token())).auth_bytes
        stage.note(challenge.decode().split(",")[2])

    return talk


def by_bare_messages(stage: Stage) -> None:
    token = stage.token()
    wire = chosen(stage, SHA_256, version=0)
    wire.send_frame(first_of(token))
    challenge = wire.bare()
    wire.send_frame(by_the_book(Attempt(SHA_256, token.password, first_of(token), challenge)))
    wire.bare()
    wire.works()


def after_a_renewal(stage: Stage) -> None:
    token = stage.token()
    owner = stage.user()
    with unrecorded(owner):
        renew(owner, token.hmac, 3_600_000)
    log_in(chosen(stage, SHA_256), SHA_256, token.password, first_of(token))


def of_another_user(stage: Stage) -> None:
    owned_by(stage, ("User", "x"))


def of_a_group(stage: Stage) -> None:
    owned_by(stage, ("Group", "x"))


def owned_by(stage: Stage, owner: tuple[str, str]) -> None:
    """Log in with a token of another owner; the answer to a create shows the principal of that login."""
    alice = stage.user()
    with unrecorded(alice):
        token = create(alice, owner=owner)
    wire = chosen(stage, SHA_256)
    log_in(wire, SHA_256, token.password, first_of(token))
    create(wire)


def deleted(stage: Stage) -> None:
    token = stage.token()
    owner = stage.user()
    with unrecorded(owner):
        expire(owner, token.hmac)
    log_in(chosen(stage, SHA_256), SHA_256, token.password, first_of(token))


def deleted_during_login(stage: Stage) -> None:
    token = stage.token()
    owner = stage.user()

    def final(attempt: Attempt) -> bytes:
        with unrecorded(owner):
            expire(owner, token.hmac)
        return by_the_book(attempt)

    log_in(chosen(stage, SHA_256), SHA_256, token.password, first_of(token), final)


def expired(stage: Stage) -> None:
    token = stage.token()
    owner = stage.user()
    with unrecorded(owner):
        expire(owner, token.hmac, 0)
        while not expire(owner, token.hmac, 0).error_code.value:
            pass
    log_in(chosen(stage, SHA_256), SHA_256, token.password, first_of(token))


CASES: Final = tuple(chain(good(), passwords(), extensions(), first_messages(), last_messages(), lives()))

"""What can go wrong for a client of delegation tokens, as a tree.

    TokenClientError                    `code` is Kafka's error code where a server sent one
      ClientConfigError                 a setting cannot be used; nothing was sent
      InvalidArgument                   an argument cannot be used; nothing was sent
      ConnectionFailed                  no connection, or it broke
        NoServerReached                 every bootstrap server failed; `reasons` tells how each
        ConnectionLost                  one connection broke: whether a request took effect is not known
        LoginMissing                    ... of a client without a login
        RequestTimedOut                 ... or was too slow
        UnexpectedAnswer                ... or what came was not Kafka's protocol
      UnsupportedByServer               the server has no such API, or not in a version that can say this
      LoginFailed                       the server refused the credentials (or we its proof)
        MechanismNotEnabled             ... or their SASL mechanism
      RequestRefused                    the server answered with an error
        StorageNotReached (7), ClusterAuthorizationFailed (31), InvalidRequest (42), AclsDisabled (54),
        TokensDisabled (61), TokenNotFound (62), TokenOwnerMismatch (63), TokenRequestNotAllowed (64),
        TokenAuthorizationFailed (65), TokenExpired (66), InvalidPrincipalType (67)

The text of each is one line that names the way out and holds no secret: no HMAC, no password.

Source: org.apache.kafka.common.protocol.Errors; KIP-48, KIP-373.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.sasl import GSSAPI, OAUTHBEARER
from kafka_dt_protocol.sasl.text import printable


class TokenClientError(Exception):
    """Anything that the client raises on purpose."""

    code: ErrorCode | None = None
    """Kafka's error code, None when no server sent one."""


class ClientConfigError(TokenClientError):
    """A setting that cannot be used; `key` is its Kafka name."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class InvalidArgument(TokenClientError):
    """An argument that no server could take."""


class ConnectionFailed(TokenClientError):
    """There is no connection, or it broke."""


class NoServerReached(ConnectionFailed):
    """None of the bootstrap servers can be used."""

    def __init__(self, reasons: Sequence[tuple[str, str]]) -> None:
        self.reasons = tuple(reasons)
        """`host:port` and what happened there, in the order in which they were tried."""
        each = "; ".join(f"{server} ({reason})" for server, reason in self.reasons)
        super().__init__(f"no bootstrap server can be used: {each}")


class ConnectionLost(ConnectionFailed):
    """A connection ended while an answer was due; whether the request took effect is not known."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"{server}: {reason}")
        self.server = server
        self.reason = reason


class LoginMissing(ConnectionLost):
    """The server closed the connection of a client that did not log in; only the server knows whether that is why."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            server,
            f"{reason}; if that listener wants a login by SASL, set security.protocol (SASL_SSL or SASL_PLAINTEXT), "
            "sasl.mechanism and sasl.jaas.config",
        )


class RequestTimedOut(ConnectionLost):
    """No answer came in time; whether the request took effect is not known."""

    def __init__(self, server: str, timeout_ms: int) -> None:
        super().__init__(server, f"no answer within {timeout_ms} ms (request.timeout.ms)")
        self.timeout_ms = timeout_ms


class UnexpectedAnswer(ConnectionLost):
    """What came is not Kafka's protocol, or answers something else; the connection was closed."""


class UnsupportedByServer(TokenClientError):
    """The server does not offer what was asked for."""

    code = ErrorCode.unsupported_version

    def __init__(self, server: str, what: str) -> None:
        super().__init__(f"{server} does not offer {what}")
        self.server = server
        self.what = what


_ADVICE: Final = (
    "check user name and password in {}sasl.jaas.config; a token logs in with SCRAM, its HMAC in base64 as password "
    'and tokenauth="true"'
)
_ADVICE_BY_MECHANISM: Final = {
    GSSAPI: "check the keytab or the tickets (klist), {0}sasl.kerberos.service.name, and that {0}bootstrap.servers has "
    "the host of the server's Kerberos name",
    OAUTHBEARER: "check the token: its issuer, audience and expiry",
}
"""`{}` stands for the prefix of the settings."""


class LoginFailed(TokenClientError):
    """The login did not succeed: wrong credentials, or a server that could not prove that it knows them."""

    code = ErrorCode.sasl_authentication_failed

    def __init__(self, server: str, mechanism: str, reason: str, code: ErrorCode | None = None) -> None:
        self.server = server
        self.mechanism = mechanism
        self.reason = printable(reason)
        self.code = code or type(self).code
        super().__init__(self.text(""))

    def text(self, prefix: str) -> str:
        """Say what failed, with the names that the settings have; prefix: `kafka.dt.gateway.upstream.` of a gateway."""
        advice = _ADVICE_BY_MECHANISM.get(self.mechanism, _ADVICE).format(prefix)
        return f"login at {self.server} with {self.mechanism} failed: {self.reason} ({advice})"


class MechanismNotEnabled(LoginFailed):
    """The listener does not take this SASL mechanism."""

    code = ErrorCode.unsupported_sasl_mechanism

    def __init__(self, server: str, mechanism: str, enabled: Iterable[str]) -> None:
        self.enabled = tuple(printable(name) for name in enabled)
        """The mechanisms that it takes."""
        super().__init__(server, mechanism, "mechanism not enabled")

    def text(self, prefix: str) -> str:
        """Say which mechanisms the listener takes; prefix: as for `LoginFailed`."""
        enabled = ", ".join(self.enabled) or "it names none"
        return f"{self.server} does not take {self.mechanism}; set {prefix}sasl.mechanism to one of its own: {enabled}"


class RequestRefused(TokenClientError):
    """The server answered with an error."""

    advice: ClassVar[str] = ""
    advice_on_expire: ClassVar[str] = ""
    """Instead of `advice` where it is not the same for ending a token."""

    def __init__(self, code: ErrorCode, action: str, said: str | None = None) -> None:
        self.code: ErrorCode = code
        self.action = action
        """What was asked for: `create`, `renew`, `expire` or `describe` of tokens, or words such as `add ACLs`."""
        advice = (self.advice_on_expire if action == "expire" else "") or self.advice
        reason = advice or printable(said or "") or code.name.replace("_", " ")
        super().__init__(f"{action} refused: {reason} (Kafka error {code.value}, {code.name})")


class StorageNotReached(RequestRefused):
    """The server answered, but did not reach what keeps the tokens; it may have had no time out of its own."""

    code = ErrorCode.request_timed_out
    advice = (
        "the server answered, but could not reach what keeps the tokens (ZooKeeper, or the cluster's controller); "
        "whether the request took effect is not known: try again, or look with describe"
    )


class ClusterAuthorizationFailed(RequestRefused):
    """The caller may not manage users or ACLs."""

    code = ErrorCode.cluster_authorization_failed
    advice = "this needs a super user, or an ACL that allows it (DESCRIBE to read, ALTER to change) on the cluster"


class AclsDisabled(RequestRefused):
    """The server has no ACLs."""

    code = ErrorCode.security_disabled
    advice = "there are no ACLs at this server: its authorizer.class.name is not set"


class InvalidRequest(RequestRefused):
    """The server can never do this; kafka-dt says so of a token that is too large."""

    code = ErrorCode.invalid_request
    advice = "the server cannot do this; a token with very many renewers is too large, so name fewer"


class TokensDisabled(RequestRefused):
    """The server makes no tokens."""

    code = ErrorCode.delegation_token_auth_disabled
    advice = "delegation tokens are switched off there; set delegation.token.secret.key on every broker"


class TokenNotFound(RequestRefused):
    """No token has this HMAC."""

    code = ErrorCode.delegation_token_not_found
    advice = "no token has this HMAC; it may be deleted or mistyped (the HMAC is base64 text, not the token id)"


class TokenOwnerMismatch(RequestRefused):
    """The caller may not change this token."""

    code = ErrorCode.delegation_token_owner_mismatch
    advice = "only the token's owner and its renewers may do this; log in as one of them"
    advice_on_expire = (
        "only the token's owner, its renewers and, at kafka-dt, super users may do this; log in as one of them"
    )


class TokenRequestNotAllowed(RequestRefused):
    """Token requests are not taken on this connection."""

    code = ErrorCode.delegation_token_request_not_allowed
    advice = "tokens are managed over a SASL or SSL listener by a user who is not logged in with a token"


class TokenAuthorizationFailed(RequestRefused):
    """The caller may not make tokens for this owner."""

    code = ErrorCode.delegation_token_authorization_failed
    advice = (
        "a token for another user needs a super user, or an ACL that allows CREATE_TOKENS on that user; "
        "without an owner it is the caller's own"
    )


class TokenExpired(RequestRefused):
    """The token is past its expiry or its maximum lifetime."""

    code = ErrorCode.delegation_token_expired
    advice = "the token has expired for good; create a new one"
    advice_on_expire = "the token has expired already; a negative period deletes it"


class InvalidPrincipalType(RequestRefused):
    """A renewer is not a user, or the owner's type cannot be one."""

    code = ErrorCode.invalid_principal_type
    advice = "renewers are users, written as User:name; an owner's type is not empty and has no colon"


class TokenLimitExceeded(RequestRefused):
    """A limit that the server's operator has set does not allow this token."""

    code = ErrorCode.policy_violation
    advice = (
        "the server allows no token like this: the owner has too many (kafka.dt.tokens.per.owner.max), or it has too "
        "many renewers (kafka.dt.token.renewers.max) or bytes (kafka.dt.token.bytes.max); the server's log says which"
    )


class TooManyCreates(RequestRefused):
    """The caller has created too many tokens in this minute."""

    code = ErrorCode.throttling_quota_exceeded
    advice = (
        "the server allows the caller no more tokens in this minute (kafka.dt.token.creates.per.minute.max); "
        "try again in the next one"
    )


_REFUSALS: Final = {
    refusal.code: refusal
    for refusal in (
        StorageNotReached,
        ClusterAuthorizationFailed,
        InvalidRequest,
        AclsDisabled,
        TokensDisabled,
        TokenNotFound,
        TokenOwnerMismatch,
        TokenRequestNotAllowed,
        TokenAuthorizationFailed,
        TokenExpired,
        InvalidPrincipalType,
        TokenLimitExceeded,
        TooManyCreates,
    )
}


def refused(code: ErrorCode, action: str, said: str | None = None) -> RequestRefused:
    """Return the error for an answer's code.

    action: what was asked for
    said: the server's own words, where the answer has some
    """
    kind = _REFUSALS.get(code, RequestRefused)
    # The advice about an invalid request is about tokens, whose answers have no words.
    return RequestRefused(code, action, said) if said and kind is InvalidRequest else kind(code, action, said)

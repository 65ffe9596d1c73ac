"""The audit event: what a node writes down of each login, each change and each look at the tokens.

Declared once: the files and the topic, the table in `docs/audit.md` and Spark's schema all come from the fields of
`AuditEvent`. Every field says in its metadata what it holds (`notes`), and which of them are instants.

An event is flat, so that a line of a file is a row of a table. What does not apply is None and is left out of the
JSON. No field can hold a secret: there is none for an HMAC, a password or a key; keys appear by their ids.

`VERSION` grows when a field changes its meaning or goes away; a new field, event type or reason leaves it as it is, so
who reads events has to live with names that it does not know.

Source: KIP-48; docs/audit.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final

VERSION: Final = 1
"""The version of the schema."""
_NOTE: Final = "note"
"""Where a field keeps its `FieldNote` in its metadata."""


class EventType(StrEnum):
    """What has happened."""

    LOGIN = "login"
    TOKEN_CREATED = "token_created"  # noqa: S105 - the name of an event
    TOKEN_RENEWED = "token_renewed"  # noqa: S105
    TOKEN_EXPIRED = "token_expired"  # noqa: S105
    """By a request: now, or at a time that it gives."""
    TOKEN_REMOVED = "token_removed"  # noqa: S105
    """By age."""
    TOKENS_DESCRIBED = "tokens_described"
    ACL_CREATED = "acl_created"
    ACL_DELETED = "acl_deleted"
    SCRAM_USER_CHANGED = "scram_user_changed"
    KEYS_CHANGED = "keys_changed"


class Outcome(StrEnum):
    """How it has ended."""

    OK = "ok"
    REFUSED = "refused"


class RefusalReason(StrEnum):
    """Why a login was refused; a refused request has the name of Kafka's error instead."""

    UNKNOWN_USER = "unknown_user"
    UNKNOWN_TOKEN = "unknown_token"  # noqa: S105 - the name of a reason
    """No token has that id, or it has been removed."""
    EXPIRED_TOKEN = "expired_token"  # noqa: S105
    """The token has ended and is still to be removed, or it ended during the login."""
    WRONG_CREDENTIALS = "wrong_credentials"
    UNSUPPORTED_MECHANISM = "unsupported_mechanism"
    """The listener does not offer what the client asked for."""
    NOT_ALLOWED = "not_allowed"
    """The credentials are good, but not for this: another principal at a re-authentication, a name no rule maps."""
    BROKEN_EXCHANGE = "broken_exchange"
    """What the client sent is no step of its mechanism."""
    UNAVAILABLE = "unavailable"
    """It could not be checked now."""


@dataclass(frozen=True, slots=True)
class FieldNote:
    """What stands about a field in the manual."""

    doc: str
    timestamp: bool = False
    """Whether it is an instant: milliseconds since 1970 in UTC."""


def _told(doc: str) -> Mapping[str, FieldNote]:
    return {_NOTE: FieldNote(doc)}


def _instant(doc: str) -> Mapping[str, FieldNote]:
    return {_NOTE: FieldNote(doc, timestamp=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One event; the names of its fields are the keys of its JSON."""

    version: int = field(default=VERSION, metadata=_told("The version of this schema."))
    id: str = field(metadata=_told("Unique: hex digits that a worker draws at its start, `-`, a number that grows."))
    time: int = field(metadata=_instant("When it happened, by the clock of the node."))
    node: str = field(metadata=_told("Which worker wrote it: the node's name, `-`, the worker's number."))
    type: EventType = field(metadata=_told("What has happened."))
    outcome: Outcome = field(metadata=_told("`ok`, or `refused`."))
    reason: str | None = field(
        default=None,
        metadata=_told("Why it was refused: of a login one of a few words, of a request Kafka's error name."),
    )
    listener: str | None = field(default=None, metadata=_told("The listener that the client came in by."))
    mechanism: str | None = field(
        default=None,
        metadata=_told("How it logged in: the SASL mechanism, or `SSL` with nothing but its certificate."),
    )
    principal: str | None = field(
        default=None,
        metadata=_told(
            "The principal that acts or has logged in, `User:alice`; of a refused login the one that the client claims."
        ),
    )
    by_token: bool | None = field(default=None, metadata=_told("Whether the connection was logged in by a token."))
    session_token_id: str | None = field(default=None, metadata=_told("The id of that token."))
    client_id: str | None = field(default=None, metadata=_told("The `client.id` of the request."))
    client_software: str | None = field(
        default=None, metadata=_told("What the client calls its library, if it does (KIP-511).")
    )
    client_software_version: str | None = field(default=None, metadata=_told("The version of that library."))
    client_address: str | None = field(default=None, metadata=_told("The IP address of the client."))
    client_port: int | None = field(default=None, metadata=_told("Its port."))
    connection: str | None = field(
        default=None,
        metadata=_told("Names the connection, unique as `id`; a second login on one is a re-authentication."),
    )
    token_id: str | None = field(
        default=None,
        metadata=_told("The token that it is about; of a refused login the id that the client gave, if it gave one."),
    )
    owner: str | None = field(default=None, metadata=_told("The owner of that token."))
    requester: str | None = field(default=None, metadata=_told("The principal that asked for that token."))
    renewers: tuple[str, ...] | None = field(
        default=None, metadata=_told("The principals that may renew that token besides its owner.")
    )
    issue_time: int | None = field(default=None, metadata=_instant("When that token was issued."))
    expiry_time: int | None = field(
        default=None, metadata=_instant("When that token ends unless it is renewed; after a change, the new one.")
    )
    max_time: int | None = field(default=None, metadata=_instant("The end of that token that no renewal moves."))
    key_id: str | None = field(default=None, metadata=_told("The id of the secret key that made that token."))
    count: int | None = field(
        default=None,
        metadata=_told("How many tokens were described; how many entries of a request were refused, if several were."),
    )
    acl: str | None = field(
        default=None, metadata=_told("The ACL that was created or deleted, as text; the first one that was refused.")
    )
    user: str | None = field(
        default=None,
        metadata=_told("The SCRAM user whose credentials were changed; the first one whose change was refused."),
    )
    keys: tuple[str, ...] | None = field(
        default=None, metadata=_told("The ids of the secret keys there are now, the current one first.")
    )
    entries: tuple[str, ...] | None = field(
        default=None,
        metadata=_told("The first of several entries of a request that were refused: ACLs, filters, users."),
    )
    limit: str | None = field(
        default=None, metadata=_told("The setting whose limit refused a token: too many, too often, too large.")
    )


def notes() -> Mapping[str, FieldNote]:
    """Say what each field holds, in the order of the schema."""
    return {each.name: _note(each.metadata) for each in fields(AuditEvent)}


def _note(metadata: Mapping[str, Any]) -> FieldNote:
    note: FieldNote = metadata[_NOTE]
    return note

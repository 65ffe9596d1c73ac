"""The audit event: a node's record of a login, of a change, or of a request to describe tokens.

The files, the topic, the table in `docs/audit.md` and Spark's schema all come from the fields of `AuditEvent`; `notes`
says what each field holds.

An event is flat, so that a line of a file is a row of a table. A field that does not apply is None, and the JSON leaves
it out. No field can hold a secret: there is none for an HMAC, a password or a key; keys appear by their ids.

`VERSION` grows when a field changes its meaning or goes away. It stays for a new field, event type or reason, so a
reader of events must accept names that it does not know.

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
    """What happened: one of the types above."""

    LOGIN = "login"
    TOKEN_CREATED = "token_created"  # noqa: S105 - the name of an event
    TOKEN_RENEWED = "token_renewed"  # noqa: S105
    TOKEN_EXPIRED = "token_expired"  # noqa: S105
    """A request ended it: at once, or at a time that the request gives."""
    TOKEN_REMOVED = "token_removed"  # noqa: S105
    """A node removed it after its expiry."""
    TOKENS_DESCRIBED = "tokens_described"
    ACL_CREATED = "acl_created"
    ACL_DELETED = "acl_deleted"
    SCRAM_USER_CHANGED = "scram_user_changed"
    KEYS_CHANGED = "keys_changed"


class Outcome(StrEnum):
    """Whether the node did what the client asked."""

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
    """The manual's text about a field."""

    doc: str
    timestamp: bool = False
    """Whether it is an instant: milliseconds since 1970 in UTC."""


def _note(doc: str, *, timestamp: bool = False) -> Mapping[str, FieldNote]:
    return {_NOTE: FieldNote(doc, timestamp)}


def _fact(doc: str, *, timestamp: bool = False) -> Any:
    """Declare a field that does not apply to every event."""
    return field(default=None, metadata=_note(doc, timestamp=timestamp))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One event; the names of its fields are the keys of its JSON."""

    version: int = field(default=VERSION, metadata=_note("The version of this schema."))
    id: str = field(
        metadata=_note("A unique id: hex digits that a worker draws at its start, `-`, a number that grows.")
    )
    time: int = field(metadata=_note("The time of the event, by the clock of the node.", timestamp=True))
    node: str = field(metadata=_note("The worker that wrote the event: the node's name, `-`, the worker's number."))
    type: EventType = field(metadata=_note("What happened: one of the types above."))
    outcome: Outcome = field(metadata=_note("`ok` or `refused`."))
    reason: str | None = _fact(
        "Why the node refused it: one of the reasons above for a login, the name of Kafka's error for a request."
    )
    listener: str | None = _fact("The listener to which the client connected.")
    mechanism: str | None = _fact("The SASL mechanism of the login, or `SSL` for a login by certificate alone.")
    principal: str | None = _fact(
        "The principal that acts or has logged in, such as `User:alice`; for a refused login, the claimed one."
    )
    by_token: bool | None = _fact("Whether the client had logged in with a token.")
    session_token_id: str | None = _fact("The id of the token that the client had logged in with.")
    client_id: str | None = _fact("The `client.id` of the request.")
    client_software: str | None = _fact("The name that the client gives to its library, if it gives one (KIP-511).")
    client_software_version: str | None = _fact("The version of that library.")
    client_address: str | None = _fact("The IP address of the client.")
    client_port: int | None = _fact("The port of the client.")
    connection: str | None = _fact(
        "A name for the connection, as unique as `id`; a second login on it is a re-authentication."
    )
    token_id: str | None = _fact(
        "The id of the token that the event is about; for a refused login, the id that the client gave, if it gave one."
    )
    owner: str | None = _fact("The owner of that token.")
    requester: str | None = _fact("The principal that asked for that token.")
    renewers: tuple[str, ...] | None = _fact("The principals that may renew that token besides its owner.")
    issue_time: int | None = _fact("When that token was issued.", timestamp=True)
    expiry_time: int | None = _fact(
        "When that token expires unless it is renewed; after a change, its new expiry.", timestamp=True
    )
    max_time: int | None = _fact("The end of that token's maximum lifetime, which no renewal moves.", timestamp=True)
    key_id: str | None = _fact("The id of the secret key that made that token.")
    count: int | None = _fact(
        "How many tokens the answer described; or how many entries of the request were refused, if several were."
    )
    acl: str | None = _fact(
        "The ACL that was created or deleted, as text, such as "
        "`ALLOW Read of LITERAL Topic:'orders' to User:alice from *`; or the first one that was refused."
    )
    user: str | None = _fact(
        "The SCRAM user whose credentials were changed; or the first one whose change was refused."
    )
    keys: tuple[str, ...] | None = _fact("The ids of the secret keys after the change, the current one first.")
    entries: tuple[str, ...] | None = _fact(
        "The first of several entries of a request that were refused: ACLs, filters or users."
    )
    limit: str | None = _fact("The setting whose limit refused a token.")


def notes() -> Mapping[str, FieldNote]:
    """Say what each field holds, in the order of the schema."""
    return {each.name: each.metadata[_NOTE] for each in fields(AuditEvent)}

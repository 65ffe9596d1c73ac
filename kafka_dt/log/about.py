"""What a line is about: for `extra` of a logging call.

    _LOG.info("Refusing a connection of %s", host, extra=of_peer(host))
    _LOG.warning("...", extra=event("login", failed=True, host=host, user=name, reason="wrong password"))

Lines of text show nothing of it; lines of JSON have it in fields of their own. A line about a client counts for that
client's share of the lines (`floods.py`).

Source: Elastic Common Schema 8.11 (event, client, user, user_agent fields).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PEER: Final = "peer"
"""The attribute of a record that holds the address of the client that the line is about."""
FIELDS: Final = "ecs"
"""The attribute of a record that holds its fields, by their names in ECS."""


def of_peer(host: str) -> Mapping[str, Any]:
    """Mark a line as one about a client.

    Args:
        host: its address without the port, which a client changes at will; empty where it has none.
    """
    return {PEER: host, FIELDS: _given({"client.ip": host})}


def event(
    action: str,
    *,
    failed: bool | None = None,
    host: str | None = None,
    user: str = "",
    reason: str = "",
    code: str = "",
    listener: str = "",
    mechanism: str = "",
    software: str = "",
) -> Mapping[str, Any]:
    """Name the event that a line is about.

    Args:
        action: the event, a name that does not change: `login`, `start`.
        failed: how it ended; None where there is nothing to succeed in.
        host: the address of the client without the port; None where the line is about no client.
        user: the name of the user, as far as it is known; a client may have chosen it.
        reason: why it happened, for people.
        code: why, as one of a few names that do not change.
        listener: by which the client came.
        mechanism: of a login.
        software: what the client calls its library.
    """
    outcome = "" if failed is None else "failure" if failed else "success"
    fields = {
        "event.action": action,
        "event.outcome": outcome,
        "event.reason": reason,
        "event.code": code,
        "client.ip": host or "",
        "user.name": user,
        "user_agent.original": software,
        "kafka_dt.listener": listener,
        "kafka_dt.mechanism": mechanism,
    }
    return {FIELDS: _given(fields)} | ({} if host is None else {PEER: host})


def _given(fields: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in fields.items() if value}

"""What a responder can do about a finding: the next commands, ready to be copied.

Values in them come from events, and some of these a client chose freely. So every value is quoted for a shell, no value
can be taken for an option, and a value with characters that do not print is in no command at all.

Placeholders are the files that an operator has: admin.properties of a super user, server.properties of a node.

Source: docs/how-to/operate.md, "Revoke"
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from kafka_dt.pipeline.report.signs.finding import Finding


@dataclass(frozen=True, slots=True)
class Response:
    """One step."""

    why: str
    command: str = ""
    """For a POSIX shell; empty where there is nothing to run."""

    def as_document(self) -> dict[str, str]:
        """Give it as JSON's types."""
        return {"why": self.why, **({"command": self.command} if self.command else {})}


Step = Callable[[Finding, str], Response | None]
"""Makes a step for a finding and the table that it is from; None where the finding lacks what the step needs."""


def advise(why: str) -> Step:
    """Make a step that is advice, without a command."""
    return lambda _finding, _table: Response(why)


def end_token(finding: Finding, _table: str) -> Response | None:
    """End the token."""
    owner, token_id = _value(finding.owner), _value(finding.token_id)
    if owner is None or token_id is None:
        return None
    # The HMAC goes from one command to the other in the environment, and is never on a screen or a command line.
    return Response(
        "End the token; its connections are closed at once:",
        "KAFKA_DT_HMAC=$(kafka-dt token describe --command-config admin.properties --output json"
        f" --owner-principal={owner}"
        f" | jq -r --arg id {token_id} '.tokens[] | select(.tokenId == $id) | .hmac')"
        " kafka-dt token expire --command-config admin.properties",
    )


def end_all_of_owner(finding: Finding, _table: str) -> Response | None:
    """End all tokens of the owner."""
    owner = _value(finding.owner)
    if owner is None:
        return None
    return Response(
        "If more than one token of this owner is concerned, see what would end, then again without --dry-run:",
        f"kafka-dt token expire-all --config server.properties --owner={owner} --dry-run",
    )


def follow_address(finding: Finding, table: str) -> Response | None:
    """Report the blast radius of the address."""
    return _blast_radius("See what else can be reached from that address:", "address", finding.address, table)


def follow_owner(finding: Finding, table: str) -> Response | None:
    """Report the blast radius of the owner."""
    return _blast_radius("See what else the owner has:", "owner", finding.owner, table)


def _blast_radius(why: str, option: str, start: str | None, table: str) -> Response | None:
    value, path = _value(start), _value(table)
    if value is None or path is None:
        return None
    return Response(why, f"kafka-dt pipeline report --table={path} --to=blast-radius --{option}={value}")


def _value(text: str | None) -> str | None:
    """Quote a value for a shell; None if it cannot be shown as it is."""
    return shlex.quote(text) if text and text.isprintable() else None

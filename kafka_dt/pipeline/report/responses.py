"""What a responder can do about a finding: the next commands, ready to be copied.

Values in them come from events, and some of these a client chose freely. So every value is quoted for a shell, cannot
be taken for an option, and whatever does not consist of printable characters is in no command at all.

Placeholders are the files that an operator has: admin.properties of a super user, server.properties of a node.

Source: docs/how-to/operate.md, "Revoke"
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_dt.pipeline.findings import IncidentKind

if TYPE_CHECKING:
    from kafka_dt.pipeline.findings import Finding


@dataclass(frozen=True, slots=True)
class Response:
    """One step."""

    why: str
    command: str = ""
    """For a POSIX shell; empty where there is nothing to run."""

    def as_document(self) -> dict[str, str]:
        """Give it as JSON's types."""
        return {"why": self.why, **({"command": self.command} if self.command else {})}


def responses(finding: Finding, table: str) -> tuple[Response, ...]:
    """Say what to do about a finding, in order.

    Args:
        finding: what was found.
        table: where the events are.
    """
    steps: list[Response | None]
    match finding.kind:
        case IncidentKind.STOLEN_TOKEN:
            steps = [
                Response("Ask the owner whether the unusual addresses and clients are theirs. If not:"),
                _end_token(finding),
                _from_address(finding, table),
                _all_of_owner(finding),
            ]
        case IncidentKind.USE_AFTER_REVOCATION:
            steps = [
                Response("Find out whether it is a job that nobody told: it needs a new token, or an end."),
                _from_address(finding, table),
                _of_owner(finding, table),
            ]
        case IncidentKind.UNKNOWN_ID_BURST:
            steps = [
                Response("Keep the address away from the listeners until you know who it is."),
                _from_address(finding, table),
            ]
        case IncidentKind.FOREIGN_RENEWAL:
            steps = [
                Response("Ask the owner who should renew this token. If it is not who did:"),
                _end_token(finding),
                Response("Make the next token with only the renewers that it needs (--renewer-principal)."),
                _from_address(finding, table),
            ]
    return tuple(step for step in steps if step is not None)


def _end_token(finding: Finding) -> Response | None:
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


def _all_of_owner(finding: Finding) -> Response | None:
    owner = _value(finding.owner)
    if owner is None:
        return None
    return Response(
        "If more than one token of this owner is concerned, see what would end, then again without --dry-run:",
        f"kafka-dt token expire-all --config server.properties --owner={owner} --dry-run",
    )


def _from_address(finding: Finding, table: str) -> Response | None:
    address, path = _value(finding.address), _value(table)
    if address is None or path is None:
        return None
    return Response(
        "See what else can be reached from that address:",
        f"kafka-dt pipeline report --table={path} --to=blast-radius --address={address}",
    )


def _of_owner(finding: Finding, table: str) -> Response | None:
    owner, path = _value(finding.owner), _value(table)
    if owner is None or path is None:
        return None
    return Response(
        "See what else the owner has:", f"kafka-dt pipeline report --table={path} --to=blast-radius --owner={owner}"
    )


def _value(text: str | None) -> str | None:
    """Quote a value for a shell; None if it cannot be shown as it is."""
    return shlex.quote(text) if text and text.isprintable() else None

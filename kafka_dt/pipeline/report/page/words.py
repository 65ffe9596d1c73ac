"""What the page calls things, and what it says about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_dt.pipeline.findings import IncidentKind, Severity

KINDS: Final[Mapping[IncidentKind, tuple[str, str]]] = {
    IncidentKind.STOLEN_TOKEN: (
        "Used by somebody else",
        "The token is used from other networks, or by other clients, than its history and its owner's say.",
    ),
    IncidentKind.USE_AFTER_REVOCATION: (
        "Tried after revocation",
        "The token was ended by a request, and somebody goes on trying it.",
    ),
    IncidentKind.UNKNOWN_ID_BURST: (
        "Guessing token ids",
        "An address tries many token ids that nobody made.",
    ),
    IncidentKind.FOREIGN_RENEWAL: (
        "Renewed by somebody else",
        "Somebody renews the token, or tries to, who never did; who does has its HMAC.",
    ),
}
"""Title and meaning of each kind."""

SEVERITIES: Final[Mapping[Severity, str]] = {
    Severity.HIGH: "act now",
    Severity.MEDIUM: "today",
    Severity.LOW: "when there is time",
}
"""What a severity asks for."""

ROLES: Final[Mapping[str, tuple[str, str]]] = {
    "owner": ("By owner", "As whom their logins act."),
    "requester": ("By requester", "Who asked for them; the owner, unless somebody may ask for others (KIP-373)."),
    "renewer": ("By renewer", "Who may renew them; a token with several renewers counts for each."),
}
"""Title and meaning of the plots of living tokens."""

THRESHOLDS: Final[Mapping[str, str]] = {
    "history": "History of a token, from its first login",
    "history_of_life": "... at most this share of its longest life",
    "shortest_history": "... at least",
    "history_logins": "Logins that make a history",
    "overlap": "How long usual use goes on beside unusual",
    "known_tokens": "Tokens of an owner that is known well",
    "networks_a_token": "Networks for each of its tokens of an owner that stays, at most",
    "parts": "Machines of a job that does not move as one",
    "clock_skew": "Clock skew, and time to hear of a revocation",
    "guessed_in_an_hour": "Different unknown ids in an hour that are no typing errors",
    "guessed_in_a_day": "... in a day",
    "guess_factor": "... and times what is usual for the address",
    "guess_history": "... in the time before",
    "earlier_renewals": "Renewals by others that show who renews",
}
"""Field of `Thresholds` -> what it is."""

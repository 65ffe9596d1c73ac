"""The states of a login as a page: what every request leads to in every state.

Source: protocol/kafka_dt_protocol/login/authentication.py, whose table this is.
"""

from __future__ import annotations

from typing import Final

from kafka_dt_protocol.login.authentication import Action, Request, State, next_step

_HEAD: Final = """\
# The states of a login

From the first byte to the end of the session a connection is in one of eight states. The table and the picture are
generated from `protocol/kafka_dt_protocol/login/authentication.py`, the table that the server itself goes by.

![A connection's way from its first byte to a session](login-states.svg)

A solid arrow is a request that is legal in its state, a dashed one the success of the SASL mechanism. The last line of
a box says what any other request costs. A connection to a listener without SASL starts in READY. READY takes a
handshake only where the session may log in again (KIP-368); elsewhere it is refused with error 34.
A failure of the mechanism is answered with error 58 (after a bare token: with nothing), and the connection is closed.

"""

ACTIONS: Final = {
    Action.ANSWER_VERSIONS: "list the APIs",
    Action.CHOOSE_MECHANISM: "choose a mechanism",
    Action.EVALUATE_TOKEN: "feed the mechanism",
    Action.SERVE: "serve",
    Action.CLOSE: "close",
    Action.REFUSE_AND_CLOSE: "error 34, close",
    Action.REFUSE: "error 34, go on",
}
"""What an action is called in the manual."""

REQUESTS: Final = {
    Request.API_VERSIONS: "ApiVersions",
    Request.HANDSHAKE_V0: "SaslHandshake v0",
    Request.HANDSHAKE_V1: "SaslHandshake v1",
    Request.TOKEN: "SASL token",
    Request.OTHER: "any other API",
}
"""What a kind of request is called in the manual."""


def page() -> str:
    """Return the page as Markdown."""
    header = f"| state | {' | '.join(REQUESTS.values())} |\n|{'---|' * (len(REQUESTS) + 1)}\n"
    return _HEAD + header + "".join(_row(state) for state in State)


def _row(state: State) -> str:
    return f"| {state.name} | " + " | ".join(_cell(state, request) for request in REQUESTS) + " |\n"


def _cell(state: State, request: Request) -> str:
    action, following = next_step(state, request)
    moved = f" → {following.name}" if following not in {state, State.CLOSING} else ""
    return ACTIONS[action] + moved

"""Every state with every request: the table of a login, row by row against what a broker does."""

import itertools

import pytest

from kafka_dt_protocol.login.authentication import TRANSITIONS, VIOLATION, Action, Request, State, next_step

EXPECTED = {
    State.INITIAL: {
        Request.API_VERSIONS: Action.ANSWER_VERSIONS,
        Request.HANDSHAKE_V0: Action.CHOOSE_MECHANISM,
        Request.HANDSHAKE_V1: Action.CHOOSE_MECHANISM,
        Request.TOKEN: Action.CLOSE,
        Request.OTHER: Action.CLOSE,
    },
    State.VERSIONS_KNOWN: {
        Request.API_VERSIONS: Action.CLOSE,
        Request.HANDSHAKE_V0: Action.CHOOSE_MECHANISM,
        Request.HANDSHAKE_V1: Action.CHOOSE_MECHANISM,
        Request.TOKEN: Action.CLOSE,
        Request.OTHER: Action.CLOSE,
    },
    State.EXCHANGE: {
        Request.API_VERSIONS: Action.REFUSE_AND_CLOSE,
        Request.HANDSHAKE_V0: Action.REFUSE_AND_CLOSE,
        Request.HANDSHAKE_V1: Action.REFUSE_AND_CLOSE,
        Request.TOKEN: Action.EVALUATE_TOKEN,
        Request.OTHER: Action.REFUSE_AND_CLOSE,
    },
    State.READY: {
        Request.API_VERSIONS: Action.ANSWER_VERSIONS,
        Request.HANDSHAKE_V0: Action.CHOOSE_MECHANISM,
        Request.HANDSHAKE_V1: Action.CHOOSE_MECHANISM,
        Request.TOKEN: Action.REFUSE,
        Request.OTHER: Action.SERVE,
    },
}
EXPECTED[State.REAUTHENTICATING] = EXPECTED[State.EXCHANGE]
EXPECTED[State.BARE_EXCHANGE] = dict.fromkeys(Request, Action.CLOSE) | {Request.TOKEN: Action.EVALUATE_TOKEN}
EXPECTED[State.BARE_REAUTHENTICATING] = EXPECTED[State.BARE_EXCHANGE]
EXPECTED[State.CLOSING] = dict.fromkeys(Request, Action.CLOSE)


@pytest.mark.parametrize(
    ("state", "request_kind"), list(itertools.product(State, Request)), ids=lambda value: value.name
)
def test_each_request_in_each_state_does_what_a_broker_does(state: State, request_kind: Request) -> None:
    assert next_step(state, request_kind)[0] is EXPECTED[state][request_kind]


def test_closing_is_the_end() -> None:
    assert all(next_step(State.CLOSING, request) == (Action.CLOSE, State.CLOSING) for request in Request)


def test_whatever_closes_leads_to_closing() -> None:
    closing = {Action.CLOSE, Action.REFUSE_AND_CLOSE}
    steps = itertools.chain(TRANSITIONS.values(), VIOLATION.values())
    assert all((action in closing) == (state is State.CLOSING) for action, state in steps)


def test_a_session_is_reached_through_an_exchange_only() -> None:
    before_login = {State.INITIAL, State.VERSIONS_KNOWN, State.EXCHANGE, State.BARE_EXCHANGE}
    reached = {following for (state, _), (_, following) in TRANSITIONS.items() if state in before_login}
    assert not any(state.logged_in for state in reached)

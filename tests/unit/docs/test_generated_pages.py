"""The manual's generated pages say what the code's tables say."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from docs.generators import DOCS, pages
from kafka_dt_protocol.login.authentication import TRANSITIONS, State

PAGES = pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == PAGES[name], f"docs/{name} is not what the code says; write it again with `make generated`"


def test_the_picture_of_a_login_shows_every_state_and_every_move() -> None:
    picture = ET.fromstring(PAGES["login-states.svg"])  # noqa: S314 - our own
    texts = {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {state.name for state in State} - {State.CLOSING.name} <= texts
    moves = {(state, following) for (state, _), (_, following) in TRANSITIONS.items() if state is not following}
    logins = 4
    paths = picture.findall("{http://www.w3.org/2000/svg}path")
    assert len(paths) == len(moves) + logins

"""The manual's generated pages say what the code's tables say."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from docs.generators import DOCS, folders, pages
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


def test_the_picture_of_the_folders_shows_each_folder_below_those_that_import_it() -> None:
    graph = folders.folders()
    row_of = {name: number for number, row in enumerate(folders.rows(graph)) for name in row}
    assert {path.name for path in (folders.ROOT / "kafka_dt").iterdir() if (path / "__init__.py").is_file()} <= {
        *row_of,
        *folders.LEAVES,
    }
    assert all(row_of[name] < row_of[other] for name, imported in graph.items() for other in imported)


def test_the_arrows_of_the_folders_lead_from_each_to_all_that_it_imports() -> None:
    graph = folders.folders()
    arrows = folders.arrows_of(graph)

    def reached(name: str) -> set[str]:
        following = {other for start, other in arrows if start == name}
        return following.union(*map(reached, following))

    assert all(imported <= reached(name) for name, imported in graph.items())
    picture = ET.fromstring(PAGES["folders.svg"])  # noqa: S314 - our own
    assert len(picture.findall("{http://www.w3.org/2000/svg}path")) == len(arrows)


def test_folders_that_import_each_other_have_no_picture() -> None:
    with pytest.raises(ValueError, match="a circle of imports"):
        folders.rows({"a": frozenset({"b"}), "b": frozenset({"a"})})

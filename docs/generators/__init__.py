"""The pages and pictures of the manual that are made of the code's own tables.

    make generated      writes them (python -m docs.generators)

`pages()` gives them all; tests/unit/docs/test_generated_pages.py compares each with its file, so a table cannot
change without its page. A new generator is a module here with a `page()` and a row in `_PAGES`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from docs.generators import (
    audit_events,
    clients,
    commands,
    errors,
    folders,
    login_picture,
    login_states,
    metrics,
    signs_of_theft,
    wire_protocol,
)
from kafka_dt.config import manual as configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DOCS: Final = Path(__file__).parents[1]
"""The folder of the manual."""

_PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "../README.md": clients.page,
    "audit.md": audit_events.page,
    "command-line.md": commands.page,
    "configuration.md": configuration.page,
    "errors.md": errors.page,
    "folders.svg": folders.page,
    "login-states.md": login_states.page,
    "login-states.svg": login_picture.page,
    "metrics.md": metrics.page,
    "protocol.md": wire_protocol.page,
    "signs-of-theft.md": signs_of_theft.page,
}


def pages() -> Mapping[str, str]:
    """Make every page: file name in the manual's folder -> its text."""
    return {name: page() for name, page in _PAGES.items()}

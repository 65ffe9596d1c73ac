"""Typed errors on the command line: one line on stderr and exit status 1, no traceback.

    with one_line(TokenClientError, ConfigError):
        ...

Other errors pass through: an unforeseen error is a bug and shows its traceback.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def one_line(*errors: type[Exception]) -> Iterator[None]:
    """Turn errors of these types into click's own, which is printed as `Error: ...` and exits with 1."""
    try:
        yield
    except errors as error:
        raise click.ClickException(" ".join(str(error).split()) or type(error).__name__) from error

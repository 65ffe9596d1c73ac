"""Keeps a second watch from a folder: each would end as many tokens in an hour as both together may.

    with held(folder):
        ...

Source: kafka_dt/files.py
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kafka_dt import files
from kafka_dt.pipeline.errors import FolderInUse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other watches of this machine from a folder; the lock ends with the process.

    Raises:
        FolderInUse: another watch has it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(files.held(folder))
        except BlockingIOError:
            raise FolderInUse(str(folder)) from None
        yield

"""Keeps a second watch from a folder: each would end as many tokens in an hour as both together may.

    with held(folder):
        ...

Source: flock(2)
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.errors import FolderInUse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NO_LOCKS: Final = {errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP}
"""From a file system that locks no directories, such as NFS."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other watches of this machine from a folder; the lock ends with the process.

    Raises:
        FolderInUse: another watch has it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(str(folder)) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(descriptor)

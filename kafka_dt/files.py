"""Files that change while a process runs: see that one has changed, and change one so that no reader sees half of it.

`open_to_others` says whether a file that holds a secret has too wide a mode, and `why_unusable` what is wrong with a
directory that need not be there yet.

    seen = stamp(path)
    ...
    if stamp(path) != seen: ...
    replace_file(path, text)

    with naming(path): ...           # errors name the file
    with locked(lock): ...           # one process at a time
    with held(directory): ...        # one process, or BlockingIOError

Source: rename(2), stat(2), flock(2).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_NO_LOCKS: Final = {errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP}
"""From a file system that locks no directories, such as NFS."""

Stamp = tuple[int, int, int, int] | None
"""Tells one content of a path from another; None where it cannot be looked at."""


def stamp(path: Path) -> Stamp:
    """Say what is at a path now; a symbolic link is followed, so that turning it (as Kubernetes does) is a change."""
    try:
        state = path.stat()
    except OSError:
        return None
    # The third tells of a mode or an owner that was put right.
    return state.st_ino, state.st_mtime_ns, state.st_ctime_ns, state.st_size


def open_to_others(path: Path) -> bool:
    """Say whether every user of the machine can read or change a file, by its mode and those of its folders.

    Access control lists are not looked at. What cannot be looked at is not open.
    """
    try:
        target = path.resolve(strict=True)
        reached = all(folder.stat().st_mode & stat.S_IXOTH for folder in target.parents)
        return reached and bool(target.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH))
    except OSError:
        return False


def why_unusable(directory: Path, rights: int) -> str | None:
    """Say why this process cannot use a directory, or make one that is not there; None if it can. Makes nothing.

    Args:
        directory: need not be there.
        rights: what the process needs in it, of `os.R_OK`, `os.W_OK` and `os.X_OK`.
    """
    try:
        # A symbolic link that leads nowhere is in the way of a new directory.
        paths = (directory, *directory.absolute().parents)
        there = next(each for each in paths if each.exists() or each.is_symlink())
        is_directory = there.is_dir()
    except OSError as error:
        return f"{directory} cannot be looked at: {error.strerror}"
    if not is_directory:
        return f"{there} is not a directory"
    if there == directory:
        return None if os.access(there, rights) else f"{directory} cannot be written to"
    return None if os.access(there, os.W_OK | os.X_OK) else f"{directory} cannot be made: {there} cannot be written to"


def why_not_made(directory: Path, rights: int, *, mode: int) -> str | None:
    """Make a directory if it is missing, for users by `mode`; then as `why_unusable`."""
    try:
        directory.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        return f"{directory} cannot be made: {error.strerror}"
    return why_unusable(directory, rights)


def replace_file(path: Path, text: str, *, new_mode: int = 0o600) -> None:
    """Give a file a new content, whole or not at all, also should the machine stop in between.

    Mode, owner and group stay. Of a symbolic link the target is replaced. Where the mode gives the group no right, the
    group becomes that of a user who may not give files to the old one.

    Args:
        path: of the file.
        text: its content, written as UTF-8.
        new_mode: of a file that is not there yet, whatever the umask; by default it is its owner's alone.

    Raises:
        OSError: it cannot be written, or its owner or group cannot be kept; it is as it was. The error names the file.
    """
    target = path.resolve()
    try:
        before = target.stat()
    except FileNotFoundError:
        before = None
    # Beside it: only within one file system a file can take the place of another.
    descriptor, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with naming(path), os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            if before is not None:
                _keep_owner(file.fileno(), before, target)
            os.fchmod(file.fileno(), new_mode if before is None else before.st_mode & 0o7777)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(partial).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(partial).unlink()
        raise
    with naming(target.parent):
        sync_directory(target.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name a file in the errors about it: that of a write to a full disk names none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process has the lock of a path, and have it; its file is made, and stays.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Keep other processes of this machine from a directory, those that ask; the lock ends with the process.

    Raises:
        BlockingIOError: another process has it.
        OSError: it cannot be opened or locked.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> None:
    """Wait until no other process has the lock of an open file, and have it until the file is closed.

    A file system without locks gives none, and the caller goes on.
    """
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _keep_owner(descriptor: int, before: os.stat_result, target: Path) -> None:
    try:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    except PermissionError as error:
        if before.st_uid == os.geteuid() and not before.st_mode & stat.S_IRWXG:
            return  # root made the file and gave it to this user: its group, root's, may do nothing with it
        raise PermissionError(error.errno, "its owner and group cannot be kept", str(target)) from error


def sync_directory(directory: Path) -> None:
    """See that the names in a directory survive should the machine stop now."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The chain of a worker's audit files: what makes a later change of them visible.

    chain = Chain(key)
    batch = chain.batch(lines)          # the first line gets the key `chain`: the SHA-256 of the batch before
    file.write(batch)
    chain.grow(batch)
    digest_path(path).write_bytes(chain.seal(FileDigest.of(path.name, content)))

A batch is the lines that were written together. Each carries the hash of the batch before it, also across files: the
first batch of a file carries the hash of the last batch of the worker's previous file. So the hash of the last batch
stands for all lines before it, and the digest of a complete file needs no other. The digest is a file of two lines:
JSON, and the signature of that line (Ed25519, base64).

`kafka_dt.audit.verification` reads all of it. Nothing here does I/O.

Source: AWS CloudTrail's digest files; RFC 8032 (Ed25519); docs/audit.md, "Evidence".
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

START: Final = "0" * 64
"""The link of the first batch of a chain."""
_LINK: Final = re.compile(rb',"chain":"([0-9a-f]{64})"}\n')
"""The end of a line with a link. No text of a client can look like it: JSON escapes its quotation marks."""
LINK_BYTES: Final = len(b',"chain":"') + len(START) + len(b'"}\n')


class DigestUnreadable(Exception):
    """A digest is not of the form that nodes write."""


def chained(lines: Sequence[bytes], link: str) -> bytes:
    """Join the lines of a batch; the first one gets a link.

    Args:
        lines: objects of JSON, each with its line feed; at least one.
        link: 64 hex digits, the hash of the batch before.
    """
    first, *others = lines
    return b"".join((first[:-2], b',"chain":"', link.encode("ascii"), b'"}\n', *others))


def link_after(batch: bytes) -> str:
    """Return the link that the next batch carries: SHA-256, 64 hex digits."""
    return hashlib.sha256(batch).hexdigest()


def link_in(line: bytes) -> str | None:
    """Return the link that a line carries, None if it does not begin a batch."""
    found = _LINK.fullmatch(line[-LINK_BYTES:])
    return None if found is None else found[1].decode("ascii")


def batches(content: bytes) -> Iterator[bytes]:
    """Divide the content of a file into its batches. What stands before the first link is a batch as well."""
    begin = end = 0
    for line in content.splitlines(keepends=True):
        if begin < end and link_in(line) is not None:
            yield content[begin:end]
            begin = end
        end += len(line)
    if begin < end:
        yield content[begin:end]


def last_link(content: bytes) -> str:
    """Return the link that follows a file's content."""
    last = deque(batches(content), maxlen=1)
    return link_after(last[0]) if last else START


@dataclass(frozen=True, slots=True)
class FileDigest:
    """What a node says about a complete file."""

    file: str
    """The file's name, without its folder."""
    lines: int
    size_bytes: int
    link: str
    """The hash of the file's last batch."""

    @classmethod
    def of(cls, name: str, content: bytes) -> Self:
        """Make the digest of a file."""
        return cls(name, content.count(b"\n"), len(content), last_link(content))

    def signed(self, key: Ed25519PrivateKey | None) -> bytes:
        """Write the digest, and the signature if there is a key."""
        document = asdict(self) | ({} if key is None else {"key": key_id(key.public_key())})
        line = json.dumps(document, separators=(",", ":")).encode("ascii") + b"\n"
        return line if key is None else line + base64.b64encode(key.sign(line)) + b"\n"


@dataclass(frozen=True, slots=True)
class ReadDigest:
    """A digest as it was found."""

    digest: FileDigest
    key: str | None
    """The id of the key that is said to have signed it, None if it is not signed."""
    _signed: bytes
    _signature: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a digest.

        Raises:
            DigestUnreadable: it is none.
        """
        line, feed, rest = data.partition(b"\n")
        try:
            fields = json.loads(line)
            key = fields.pop("key", None)
            return cls(FileDigest(**fields), key, line + feed, base64.b64decode(rest, validate=False))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise DigestUnreadable(str(error)) from error

    def is_signed_by(self, key: Ed25519PublicKey) -> bool:
        """Whether it names a key, and that key has signed it."""
        if self.key != key_id(key):
            return False
        try:
            key.verify(self._signature, self._signed)
        except InvalidSignature:
            return False
        return True


class Chain:
    """The chain of one worker, as it grows.

    Args:
        key: signs the digests of complete files; None leaves them without a signature.
    """

    link: str | None = None
    """What the next batch carries; None before the first look where the chain ends."""

    def __init__(self, key: Ed25519PrivateKey | None = None) -> None:
        self._key = key

    def batch(self, lines: Sequence[bytes]) -> bytes:
        """Join the lines of the next batch."""
        return chained(lines, self.link or START)

    def grow(self, batch: bytes) -> None:
        """Take note that a batch was written."""
        self.link = link_after(batch)

    def seal(self, digest: FileDigest) -> bytes:
        """Write a digest, and sign it if there is a key."""
        return digest.signed(self._key)


def key_id(key: Ed25519PublicKey) -> str:
    """Name a key: the first 16 hex digits of the SHA-256 of its 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]

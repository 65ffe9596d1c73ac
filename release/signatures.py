"""Checksums of the files of a release, and their signature by an SSH key.

One signature covers all files: it signs `SHA256SUMS`. Who verifies needs OpenSSH 8.1 and coreutils, no network.

Source: sha256sum(1); ssh-keygen(1), `-Y sign` and ALLOWED SIGNERS; docs/decisions/0032-what-a-release-is.md.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from release.tools import run

if TYPE_CHECKING:
    from pathlib import Path

SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = f"{SUMS}.sig"
SIGNERS: Final = "allowed_signers"
"""The public key in the form that ssh-keygen verifies with."""
SIGNER: Final = "kafka-dt"
"""The name under which the key stands there."""
_NAMESPACE: Final = "file"
"""What ssh-keygen recommends for files, so that a signature of anything else is none of a file."""


def write_sums(folder: Path) -> None:
    """Write the checksums of all files of a folder, sorted by name."""
    files = sorted(path for path in folder.iterdir() if path.name not in (SUMS, SIGNATURE, SIGNERS))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def sign(folder: Path, key: Path) -> None:
    """Sign the checksums, write the public key beside them and verify.

    key: the file of a private key, or of a public one whose private key ssh-agent has

    Raises:
        NotReleased: ssh-keygen cannot sign with it.
    """
    public = key.read_text(encoding="ascii") if key.suffix == ".pub" else run(["ssh-keygen", "-y", "-f", key], folder)
    (folder / SIGNERS).write_text(f'{SIGNER} namespaces="{_NAMESPACE}" {public.strip()}\n', encoding="ascii")
    sums = (folder / SUMS).read_bytes()
    signature = run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", _NAMESPACE], folder, stdin=sums)
    (folder / SIGNATURE).write_text(f"{signature}\n", encoding="ascii")
    verify = ["ssh-keygen", "-Y", "verify", "-f", SIGNERS, "-I", SIGNER, "-n", _NAMESPACE, "-s", SIGNATURE]
    run(verify, folder, stdin=sums)

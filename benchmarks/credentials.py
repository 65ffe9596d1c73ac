"""Derive what clients need to log in with tokens, before a measurement begins.

A server names a salt for each token; what follows from salt and secret takes a client 4,096 rounds of HMAC, ten times
the CPU of all the rest of a login. Real clients do it as well, but on machines of their own. So the generator first
asks for the salts (it begins each login and leaves it there), the keys are derived here on all cores, and the measured
logins only use them.

Source: RFC 5802 section 3.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.generator import Job, LoadGenerator
from benchmarks.tokens import password_of

PROBES_AT_ONCE: Final = 16

ServerAddress = tuple[str, str]
Known = dict[tuple[str, str, str, str], str]
"""What was derived before: (hash, token id, salt, iterations) -> the line about it."""


def write_credentials(
    path: Path, generator: LoadGenerator, server: ServerAddress, ids: Sequence[str], known: Known
) -> Path:
    """Write the file of credentials that the generator reads.

    Args:
        path: the file to write.
        generator: asks the server for salts.
        server: host:port of the listener without TLS, and the mechanism, SCRAM-SHA-256 or SCRAM-SHA-512.
        ids: of the tokens.
        known: the lines that were derived before; the function adds the new ones. Some servers name the same salt again
            after a restart.

    Returns:
        The path.
    """
    address, mechanism = server
    names, probed = path.with_suffix(".names"), path.with_suffix(".probed")
    names.write_text("".join(f"{token_id}\n" for token_id in ids))
    generator.run(
        Job(
            address=address,
            phases=("PROBE",),
            connections=min(PROBES_AT_ONCE, len(ids)),
            mechanism=mechanism,
            credentials=names,
            probed=probed,
        )
    )
    order = {token_id: number for number, token_id in enumerate(ids)}
    found = sorted((line.split("\t") for line in probed.read_text().splitlines()), key=lambda row: order[row[0]])
    path.write_text("".join(derived_lines(mechanism, [(row[0], row[1], row[2]) for row in found], known)))
    return path


def derived_lines(mechanism: str, salted: Sequence[tuple[str, str, str]], known: Known) -> list[str]:
    """Derive the lines of a file of credentials, on all cores.

    Args:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        salted: token id, salt as base64, iterations.
        known: the lines that were derived before; the function adds the new ones.
    """
    hash_name = f"sha{mechanism.rpartition('-')[2]}"
    keys = [(hash_name, *each) for each in salted]
    new = [key for key in keys if key not in known]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        known.update(zip(new, threads.map(lambda key: derive(*key), new), strict=True))
    return [known[key] for key in keys]


def derive(hash_name: str, token_id: str, salt: str, iterations: str) -> str:
    """Derive the keys of one token: a line of the file of credentials."""
    password = password_of(token_id).encode()
    salted = hashlib.pbkdf2_hmac(hash_name, password, base64.b64decode(salt), int(iterations))
    keys = (hmac.digest(salted, purpose, hash_name) for purpose in (b"Client Key", b"Server Key"))
    fields = (token_id, salt, iterations, *(base64.b64encode(key).decode() for key in keys))
    return "\t".join(fields) + "\n"

"""Files with secrets of a node that every user of its machine can open: its settings, and the files that they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_dt.cli.check.finding import Finding
from kafka_dt.config import given_properties, options
from kafka_dt.config.load import LISTENER_PREFIX
from kafka_dt.config_providers import PLACES, named_files
from kafka_dt.files import open_to_others

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_KEY_STORE: Final = "keystore.location"
_PUBLIC: Final = ("certificate.chain", "truststore.certificates", "truststore.password")
"""The ends of keys that Kafka hides as it hides passwords, although what they protect is no secret."""
_LOGIN: Final = "sasl.jaas.config"
_PASSWORD: Final = re.compile(r"\b(?:user_|password\b)")
"""What is in a login of JAAS with a secret; that of Kerberos and that of a listener for SCRAM have none."""
_FILE: Final = PLACES[0]


def open_files(config: Path | None, overrides: Sequence[str]) -> Iterator[Finding]:
    """Give each file with a secret that every user can open, with the first setting whose secret it holds.

    The arguments are those of `load`.

    Raises:
        ConfigError: the file of the settings cannot be read.
    """
    in_file = given_properties(config).properties
    seen = set()
    for key, text in given_properties(config, overrides).properties.items():
        for file in _files(key, text.strip(), config if in_file.get(key) == text else None):
            if file not in seen and open_to_others(file):
                yield Finding(key, f"every user of this machine can open {file}; chmod o= {file}")
            seen.add(file)


def _files(key: str, text: str, config: Path | None) -> Iterable[Path]:
    """Return the files that hold the secret of a setting; config: what holds the text itself, None = no file."""
    if key.endswith(_KEY_STORE):
        return [Path(text)] if text else []
    if not text or not _is_secret(key):
        return []
    if text.startswith(PLACES):
        return [Path(text.removeprefix(_FILE))] if text.startswith(_FILE) else []
    named = named_files(text)
    if named is not None:
        return named
    if config is None or (key.endswith(_LOGIN) and not _PASSWORD.search(text)):
        return []
    return [config]


def _is_secret(key: str) -> bool:
    if key.endswith(_PUBLIC):
        return False
    secrets = {name for _, declared in options() if declared.secret for name in (declared.key, *declared.aliases)}
    return key in secrets or (key.startswith(LISTENER_PREFIX) and key.endswith((_LOGIN, *secrets)))

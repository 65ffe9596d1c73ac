"""Files with secrets of a node that every user of its machine can open: its settings, and the files that they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_dt.cli.check.finding import Finding
from kafka_dt.config import options
from kafka_dt.config.load import LISTENER_PREFIX
from kafka_dt.config_providers import PLACES, named_files
from kafka_dt.files import open_to_others

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kafka_dt.config import Given

_FILES: Final = ("keystore.location", "upstream.identity.file")
"""The ends of keys that name a file with secrets."""
_PUBLIC: Final = ("certificate.chain", "truststore.certificates", "truststore.password")
"""The ends of keys that Kafka hides as it hides passwords, although what they protect is no secret."""
_LOGIN: Final = "sasl.jaas.config"
_PASSWORD: Final = re.compile(r'\b(?:user_[^\s=]*|password)\s*=\s*(?:"[^"]|[^"\s;])')
"""A password in a login of JAAS."""
_KEYTAB: Final = re.compile(r'\bkeyTab\s*=\s*"?(?:FILE:)?([^"\s;]+)')
_FILE: Final = PLACES[0]


def open_files(config: Path | None, given: Given, values: Mapping[str, str]) -> Iterator[Finding]:
    """Give each file with a secret that every user can open, with the first setting whose secret it holds.

    Args:
        config: the file of the settings; None where there is none.
        given: the settings as they were given.
        values: keys and texts, with the values of `config.providers`.
    """
    seen = set()
    for key, file in (*_inside(config, given), *_in_places(given), *_by_name(values)):
        if file not in seen and open_to_others(file):
            yield Finding(key, f"every user of this machine can open {file}; chmod o= {file}")
        seen.add(file)


def _inside(config: Path | None, given: Given) -> Iterator[tuple[str, Path]]:
    """Give the file of the settings with each key whose secret stands in it."""
    for key, text in given.in_file.items():
        _, left = named_files(text, given.properties)
        if config is None or not _is_secret(key) or not left.strip() or left.strip().startswith(PLACES):
            continue
        if not key.endswith(_LOGIN) or _PASSWORD.search(left):
            yield key, config


def _in_places(given: Given) -> Iterator[tuple[str, Path]]:
    """Give the files in which the settings say that a secret is."""
    for key, text in given.properties.items():
        if _is_secret(key):
            files, _ = named_files(text, given.properties)
            place = text.strip()
            yield from ((key, file) for file in files)
            if place.startswith(_FILE):
                yield key, Path(place.removeprefix(_FILE))


def _by_name(values: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Give key stores, keytabs, and the file of a gateway's upstream logins."""
    for key, text in values.items():
        if key.endswith(_FILES) and text.strip():
            yield key, Path(text.strip())
        elif key.endswith(_LOGIN):
            yield from ((key, Path(keytab)) for keytab in _KEYTAB.findall(text))


def _is_secret(key: str) -> bool:
    if key.endswith(_PUBLIC):
        return False
    secrets = {name for _, declared in options() if declared.secret for name in (declared.key, *declared.aliases)}
    return key in secrets or (key.startswith(LISTENER_PREFIX) and key.endswith((_LOGIN, *secrets)))

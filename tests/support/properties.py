"""Properties files as Java reads them, private to this user because they hold passwords and keys.

Source: java.util.Properties.load.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import javaproperties


def write_properties(path: Path, properties: Mapping[str, object]) -> Path:
    """Write `properties` to `path` with mode 0600; booleans become true and false. Returns the path."""
    texts = {key: _text(value) for key, value in properties.items()}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(javaproperties.dumps(texts, timestamp=False))
    return path


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""The two files of a node's secret keys, as the settings name them."""

from __future__ import annotations

from pathlib import Path

from kafka_dt.config import SecretKeyFiles, Settings, from_properties


class KeyFiles:
    """A file of the current key and one of the previous keys. At first there are forty `o` and no previous key."""

    def __init__(self, directory: Path) -> None:
        self.current, self.previous = directory / "current", directory / "previous"
        self.current.write_text("o" * 40)
        self.previous.write_text("")
        self.settings: Settings = from_properties(
            {
                "delegation.token.secret.key": f"file:{self.current}",
                "kafka.dt.secret.keys.previous": f"file:{self.previous}",
            }
        ).settings

    def read(self) -> SecretKeyFiles:
        """Return what a node reads the files by."""
        return SecretKeyFiles(self.settings)

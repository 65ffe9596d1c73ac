"""The files of keys, made as docs/how-to/change-keys.md says."""

from __future__ import annotations

import getpass
import stat
import subprocess
from pathlib import Path

import javaproperties

from kafka_dt.config import SecretKeyFiles, from_properties
from tests.support.docs.documents import blocks


def test_the_files_of_keys_are_made_as_the_manual_says_and_a_node_takes_them(tmp_path: Path) -> None:
    """The commands of docs/how-to/change-keys.md, with another directory, and this user in the place of kafka-dt."""
    keys = tmp_path / "etc" / "kafka-dt"
    keys.parent.mkdir()
    text = blocks("docs/how-to/change-keys.md", "sh")[0].text.replace("/etc/kafka-dt", "KEYS")
    text = text.replace(" kafka-dt", f" {getpass.getuser()}").replace("KEYS", str(keys))
    subprocess.run(["/bin/bash", "-euc", f"umask 022; {text}"], check=True, capture_output=True)
    shown = blocks("docs/how-to/change-keys.md", "properties")[0].text.replace("/etc/kafka-dt", str(keys))
    settings = from_properties({**javaproperties.loads(shown), "zookeeper.connect": "unused"}).settings
    ring = SecretKeyFiles(settings).keys
    assert ring is not None
    assert (len(ring.current) > 32, ring.previous) == (True, ())
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in (keys, *keys.iterdir())} == {
        "kafka-dt": 0o700,
        "secret.key": 0o600,
        "previous.keys": 0o600,
    }

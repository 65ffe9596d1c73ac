"""Remember a worker's own writes to ZooKeeper, in memory and, if the worker has one, in a file.

memory = WitnessMemory(folder / "witness-0.json")
memory.witness                 # None: nothing is remembered
await memory.keep(witness)     # replaces it, in the file as well
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from kafka_dt.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_dt.zookeeper.connection.operations import Stat

_LOG = logging.getLogger(__name__)

KEPT_MS: Final = 30 * 24 * 60 * 60_000
"""How long a witness counts, in a file and in ZooKeeper, after its last write."""


@dataclass(frozen=True, slots=True)
class Witness:
    """The last write that is remembered."""

    name: str
    """Of the znode, which this worker alone writes."""
    cluster_id: str
    """Of the cluster, to tell another one from one that was restored."""
    created_zxid: int
    """The transaction that made the znode."""
    version: int
    """What the znode's version was after the write."""
    written_ms: int
    """ZooKeeper's time of the write, in milliseconds since 1970."""
    accepted: tuple[str, ...] = ()
    """The acceptances that ZooKeeper had then (`History`)."""

    def written(self, stat: Stat, accepted: tuple[str, ...]) -> Witness:
        """Return the witness after another write."""
        return replace(
            self,
            created_zxid=stat.created_zxid,
            version=stat.version,
            written_ms=stat.modified_ms,
            accepted=accepted,
        )


class WitnessMemory:
    """Remembers a witness.

    Args:
        file: where it is kept beyond the end of the process; None = nowhere.

    Raises:
        ValueError: the file is there and holds something else.
        OSError: the file cannot be read.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self._is_full = False
        self.witness = _read(file) if file is not None and file.exists() else None

    def forget(self) -> None:
        """Forget the witness; the file keeps it until the next `keep`."""
        self.witness = None

    async def keep(self, witness: Witness) -> None:
        """Remember a write."""
        self.witness = witness
        if self.file is None:
            return
        try:
            await asyncio.to_thread(replace_file, self.file, json.dumps(asdict(witness)))
            self._is_full = False
        except OSError as error:
            if not self._is_full:
                _LOG.warning(
                    "%s cannot be written, so a restart would not notice a restored ZooKeeper: %s", self.file, error
                )
            self._is_full = True


def _read(file: Path) -> Witness:
    try:
        witness = Witness(**json.loads(file.read_text(encoding="utf-8")))
        return replace(witness, accepted=tuple(witness.accepted))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} does not hold what kafka-dt has written there: {error}") from None

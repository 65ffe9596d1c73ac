"""Events that are so frequent that a worker counts each in a plain number of its own.

    counts.frequent.connections += 1        # for each event
    counts.take_over()                      # every second, and at the end: adds them to the numbers of the node

To count an event in the memory of the node takes a microsecond where nothing of it is in the processor's cache, as
between two system calls. That would be one or two percent of the cheapest login.

Limit: a worker that is killed loses those of the last second.

Source: docs/decisions/0029-numbers-of-the-workers.md.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(slots=True)
class Frequent:
    """The events since they were taken over last."""

    connections: int = 0
    """Connections that were accepted."""
    logins: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Logins that succeeded, by mechanism."""
    tokens_found: int = 0
    """Tokens of logins that were found in memory."""
    to_cluster_bytes: int = 0
    to_clients_bytes: int = 0
    """What the gateway forwarded."""
    forwarded: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Requests that the gateway forwarded, by API key."""

"""Work on every token znode at once: seal, unseal, verify, expire, count; on a live system, beside running nodes.

Read `engine.py` first: it reads the znodes of given names, has a task decide about each, and writes what was decided,
guarded by the version that was read unless a removal needs no guard. `decisions.py` has the words that all files use.
`opening.py` reads a znode for the tasks in `tasks.py`, `inventory.py` tells what is known of each token and counts them
by key, and `writes.py` makes the changes in ZooKeeper at a rate.

Nothing here prints or asks, and nothing is kept of a token that is done: given a connection, names and a task, the
engine serves a command as well as one partition of a larger job (`kafka_dt.pipeline.bulk`).
"""

from kafka_dt.bulk.decisions import Result, Summary, Task, ZnodeResult
from kafka_dt.bulk.engine import ALWAYS_CHANGED, UNREACHABLE, BulkLimits, Report, process, token_ids
from kafka_dt.bulk.inventory import Census, Row, census, inventory
from kafka_dt.bulk.tasks import NOT_READABLE, STILL_LIVE, Expire, ExpireOfKey, Reseal, Seal, TokenFilter, Unseal, Verify
from kafka_dt.bulk.writes import DELETIONS_A_SECOND, WRITES_A_SECOND, Portion, handed_over_changes

__all__ = [
    "ALWAYS_CHANGED",
    "DELETIONS_A_SECOND",
    "NOT_READABLE",
    "STILL_LIVE",
    "UNREACHABLE",
    "WRITES_A_SECOND",
    "BulkLimits",
    "Census",
    "Expire",
    "ExpireOfKey",
    "Portion",
    "Report",
    "Reseal",
    "Result",
    "Row",
    "Seal",
    "Summary",
    "Task",
    "TokenFilter",
    "Unseal",
    "Verify",
    "ZnodeResult",
    "census",
    "handed_over_changes",
    "inventory",
    "process",
    "token_ids",
]

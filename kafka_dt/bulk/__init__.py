"""Work on every token znode at once: seal, unseal, verify, expire, count; on a live system, beside running nodes.

Read `engine.py` first: it reads the znodes of given names, has a task decide about each, and writes what was decided,
guarded by the version that was read. `tasks.py` and `expiry.py` are the tasks, `opening.py` reads a znode for them,
`filters.py` says which tokens are meant, `census.py` counts tokens by key, `inventory.py` tells what is known of each;
`writes.py` makes the changes in ZooKeeper, `pace.py` bounds them, `summary.py` adds up the results,
`decisions.py` has the words that all of them use. `kafka_expiry.py` ends tokens over the Kafka protocol instead.

Nothing here prints or asks, and nothing is kept of a token that is done: given a connection, names and a task, the
engine serves a command as well as one partition of a larger job (`kafka_dt.pipeline.bulk.partition`).
"""

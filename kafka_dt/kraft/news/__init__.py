"""News between nodes: a node that ends a token in the cluster tells the others by a topic of that cluster.

A node hears of a change from its broker, which may be behind for seconds, or be cut off from its controllers. The
records of a topic do not go that way: they reach every node within milliseconds.

Read `exchange.py` first: it tells, and has a reader (`reading.py`) for each replica of the topic. `message.py` is what
a record says, `records.py` puts messages into batches of records. `member.py` keeps the connection to one broker that
has the topic, `topic.py` has the requests, and `settings.py` how the topic is made and what may be wrong with it.

Source: docs/decisions/0034-news-of-revocations.md.
"""

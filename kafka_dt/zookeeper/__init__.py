"""Everything this package keeps in ZooKeeper, in the layout of an Apache Kafka broker.

Read `znodes.py` first: it says which paths there are and what their bytes mean, and `acl_znodes.py` does for ACLs.
`client.py` is the asyncio face of kazoo (no other package of this project sees kazoo), `changes.py` follows a parent of
sequential change nodes, and each store has a file of its own: `token_store.py`, `acl_store.py`, `scram_users.py`,
`cluster_id.py`. `embedded.py` starts a real ZooKeeper as a child process for laptops, demos and tests.

Source: kafka.zk.ZkData, kafka.zk.KafkaZkClient.
"""

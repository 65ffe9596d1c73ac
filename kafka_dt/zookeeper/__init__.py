"""Everything that kafka-dt keeps in ZooKeeper, in the layout of an Apache Kafka broker; and a ZooKeeper to run.

Read `znodes/kafka.py` first: it says which paths there are and what their bytes mean. `connection/client.py` is the
asyncio face of kazoo, which no other package of this project sees. `stores/` implements the interfaces that the domain
owns (`kafka_dt.stores`), with `sealing/` for the content of tokens and `proofs/` for how much can be
believed; `node.py` builds the stores of a node. `embedded/` starts a real ZooKeeper as a child process for laptops,
demos and tests.

Source: kafka.zk.ZkData, kafka.zk.KafkaZkClient.
"""

"""`kafka-dt check`: what is wrong with the settings of a node. Read `command.py` first.

`dangers.py` looks at the settings alone; `surroundings.py` asks ZooKeeper, the cluster behind a gateway and the
brokers. What a node would refuse is known by `kafka_dt.app`.
"""

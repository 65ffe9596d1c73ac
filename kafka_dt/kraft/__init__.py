"""The delegation tokens of a Kafka cluster without ZooKeeper (KRaft) as the store of a node.

Read `source.py` first: how a worker follows the tokens. `offsets.py` says when an answer of a broker is new enough,
`reader.py` asks one broker at a time, `listing.py` finds what has changed since its last answer, and `knowledge.py`
decides which states of an answer are news. `acls.py` follows the ACLs by which a node decides. `changes.py` creates,
renews and expires tokens in the cluster, `requests.py` has the requests of all of them. `news/` tells the other nodes
which tokens were ended here. `fitness.py` tells whether a cluster can be used, `finding.py` is one point of that, and
`cluster.py` waits at the start of a node until it can. `session.py` makes the sessions in which all of them ask,
`no_scram_users.py` has the store that such a node has no use for, and `node.py` puts the stores of a node together.

Source: KIP-900; docs/decisions/0025-the-clusters-own-tokens.md.
"""

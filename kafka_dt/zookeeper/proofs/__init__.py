"""Proofs about ZooKeeper's data: how fresh it is, and that its history did not go back.

Read `history.py` first; `kafka_dt.tokens.staleness` says how old the data may be.
"""

"""Proofs about ZooKeeper's data: how fresh it is, and that its history did not go back.

Read `staleness.py` first.
"""

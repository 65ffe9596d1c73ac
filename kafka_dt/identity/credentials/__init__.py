"""Credentials of SCRAM users and tokens: found, derived and changed.

Read `scram.py` first: what a SCRAM login is checked against. `derivation.py` makes and keeps the credentials of tokens,
with the threads of `newest_first.py`; `ahead.py` has it make those of new tokens in idle time, and `shared.py` has the
workers of a node share them; `scram_changes.py` changes the users of the cluster.
"""

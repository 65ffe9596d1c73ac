"""Delegation tokens: the values, the rules and the cache, without a socket, a database or a clock of their own.

Read `token.py` first (what a token is), then `manager.py` (what may be done with it, by whom, in which order it is
checked), then `store.py` (what is asked of the place that keeps the tokens, and on what "no lost update, no
resurrection" rests). `cache.py` is what this process knows of the store, `keyring.py` makes the secrets, `errors.py`
is the tree of refusals.
"""

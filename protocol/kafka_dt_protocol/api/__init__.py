"""The APIs that are spoken: which versions, how each answer is made, and what a gateway does with each.

Read `registry.py` first: every API is declared there, once. `table.py` says what a declaration holds and what follows
from it, `responses.py` makes answers, `entities.py` gives the types of requests and answers, and `offered_versions.py`
is what a gateway announces.
"""

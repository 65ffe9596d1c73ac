"""Who is there, and what they may do.

Read `login.py` first: it drives the SASL machines of `protocol` and decides the principal. `credentials.py` finds what
a login is checked against, `derivation.py` makes and keeps the SCRAM credentials of tokens, `revocations.py` makes a
revocation count on all workers of a node at once, `authorizer.py` says who may have or see tokens of others.
"""

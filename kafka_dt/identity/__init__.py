"""Principals: how clients log in, and what they may do.

Read `login/login.py` first: it passes a client's messages to an exchange and decides the principal.
`mechanisms/__init__.py` declares the SASL mechanisms; each makes exchanges of its own, which find what a login is
checked against: `credentials/` has SCRAM users and tokens, `oauth/` judges bearer tokens, `kerberos/` runs GSSAPI.
`certificates/` names the principals of clients that show a certificate instead. `revocation/` makes a revocation count
on all workers of a node at once. `acls/` says which principal may do what.
"""

"""Principals: how clients log in, and what they may do.

Read `login/login.py` first: it passes a client's messages to an exchange and decides the principal.
`mechanisms/__init__.py` declares the SASL mechanisms; their exchanges find what a login is checked against:
`credentials/` has SCRAM users and tokens, `oauth/` the keys of bearer tokens, `kerberos/` GSSAPI and its names.
`certificates.py` names the principals of clients that show a certificate instead. `revocation.py` makes a revocation
count on all workers of a node at once. `acls/` says which principal may do what.
"""

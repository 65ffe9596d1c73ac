"""The gateway: clients log in here, and what else they send goes to a cluster behind, under their own identity.

`connecting.py` gets a principal a connection there: `identities.py` says who it is (`owner_tokens.py`, `mapped.py`),
`upstream.py` is the connection, `upstream_settings.py` how it is made.
"""

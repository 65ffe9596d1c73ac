"""The gateway: clients log in here, and what else they send goes to a cluster behind, under their own identity.

`upstream.py` is a connection there, `identities.py` who it is for; `upstream_settings.py` says how it is made.
"""

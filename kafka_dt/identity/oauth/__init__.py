"""Bearer tokens of OAUTHBEARER.

Read `bearer.py` first: it judges signatures and claims by the keys that `jwks.py` holds. `settings.py` reads what is
set for a listener.
"""

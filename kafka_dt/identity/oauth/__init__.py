"""Bearer tokens of OAUTHBEARER: their signatures and claims. Read `bearer.py` first."""

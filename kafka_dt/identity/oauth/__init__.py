"""The keys of bearer tokens. Read `settings.py` first; `jwks.py` holds the keys of a listener's issuer."""

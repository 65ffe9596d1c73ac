"""Kerberos. Read `names.py` first: the rules for principals' names. `gss.py` is the one module that imports gssapi."""

"""The logins of one connection, and the tokens that they are by.

Read `login.py` first: the driver. `exchange.py` is the shape that each mechanism has for it, and `tokens.py` says which
tokens are alive and not revoked.
"""

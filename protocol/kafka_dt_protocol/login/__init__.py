"""The login of a connection: which request is legal in which state. Read `authentication.py` first."""

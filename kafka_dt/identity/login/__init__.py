"""The logins of one connection, and the tokens that they are by. Read `login.py` first."""

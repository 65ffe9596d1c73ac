"""Audit events of connections and requests.

Read `requests.py` first: it writes down the result of each request; each API says how, beside its handler.
`connection.py` writes down logins and knows where requests come from.
"""

"""Audit events of connections and requests.

Read `requests.py` first: it writes down what became of each request; beside its handler each API says how.
`connection.py` writes down logins and knows where requests come from, `acls.py` writes an ACL as a line of text.
"""

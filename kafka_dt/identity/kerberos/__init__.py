"""Kerberos logins: contexts, and the rules that turn names into principals. Read `contexts.py` first."""

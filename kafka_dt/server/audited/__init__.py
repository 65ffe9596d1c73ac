"""Audit events of connections and requests. Read `requests.py` first."""

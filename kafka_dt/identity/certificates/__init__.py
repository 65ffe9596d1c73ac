"""Principals of client certificates.

Read `client_principal.py` first; `principal_rules.py` has the mapping rules.
"""

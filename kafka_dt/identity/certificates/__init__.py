"""Principals of client certificates. Read `client_principal.py` first."""

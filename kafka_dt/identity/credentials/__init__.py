"""Credentials of users and tokens, and how they are found or derived. Read `scram.py` first."""

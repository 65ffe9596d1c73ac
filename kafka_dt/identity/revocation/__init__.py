"""Revoked tokens: every worker of a node refuses them at once. Read `revocations.py` first."""

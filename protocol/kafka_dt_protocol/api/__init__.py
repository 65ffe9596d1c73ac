"""The APIs that a server offers: which versions, and how each answer is made. Read `registry.py` first."""

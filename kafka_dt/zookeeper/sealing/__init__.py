"""Sealed znodes (KIP-395), and the codec that reads either form. Read `sealed.py` first."""

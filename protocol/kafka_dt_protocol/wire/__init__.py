"""Bytes and values: frames, headers, and the entities of kio. Read `frames.py` first."""

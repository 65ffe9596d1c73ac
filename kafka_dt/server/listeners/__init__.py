"""Open ports: which connections a node accepts, and when. Read `listener.py` first."""

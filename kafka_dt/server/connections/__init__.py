"""One client's connection: its socket, its memory, its session. Read `connection.py` first."""

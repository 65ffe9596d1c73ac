"""The znodes: the path of each, and the meaning of its bytes. Read `kafka.py` first."""

"""The processes of one node: a supervisor, its workers and a guard. Read `supervisor.py` first."""

"""The processes of one node: a supervisor starts the workers and replaces them.

Read `supervisor.py` first.
"""

"""The processes of one node, and what a node is given to share with others.

Read `supervisor.py` first: it starts the workers and replaces them. `stores.py` and `cluster.py` are the interfaces of
everything that a node keeps outside of its processes.
"""

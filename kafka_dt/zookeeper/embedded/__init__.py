"""A real ZooKeeper server as a child process. Read `server.py` first."""

"""A client of ZooKeeper for asyncio, over kazoo. Read `client.py` first."""

"""The stores that the domain asks for, kept in ZooKeeper as a broker keeps them. Read `tokens.py` first."""

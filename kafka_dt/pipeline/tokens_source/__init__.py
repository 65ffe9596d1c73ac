"""`spark.read.format("delegation_tokens")`: every token in a ZooKeeper as a row. Read `source.py` first."""

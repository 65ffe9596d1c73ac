"""`kafka-dt token`: create, renew, expire and describe tokens. Read `commands.py` first."""

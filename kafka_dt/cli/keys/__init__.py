"""`kafka-dt keys`: the secret keys of delegation tokens. Read `commands.py` first."""

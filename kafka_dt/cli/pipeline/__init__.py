"""`kafka-dt pipeline`: the commands on Spark. Read `commands.py` first."""

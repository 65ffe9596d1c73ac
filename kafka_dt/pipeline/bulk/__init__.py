"""Work on every token, distributed over Spark's executors. Read `jobs.py` first."""

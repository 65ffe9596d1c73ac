"""Work on every token, distributed over Spark's executors.

Read `job.py` first: what is done, as it travels to executors. `jobs.py` hands out partitions,
`partition.py` works on one. This package exports nothing, because the command line reads `job.py` without Spark.
"""

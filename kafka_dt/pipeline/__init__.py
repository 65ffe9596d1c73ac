"""The pipeline on Spark: audit events into a table, reports from it, and work on every token of a cluster.

Read first: `table.py` says where things are kept, `schema.py` what an event is there, `session.py` how Spark is
started. Each job is a module or a folder with functions DataFrame -> DataFrame; the commands `kafka-dt pipeline ...`
call them. The same code runs on one machine, under `spark-submit` and on a cluster.

Nothing is imported here: pyspark is an extra, and importing it takes a second.
"""

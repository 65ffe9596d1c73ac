"""The pipeline on Spark: audit events into a table, reports from it, and work on every token of a cluster.

    from kafka_dt.pipeline.session import spark_session     # starts Spark
    from kafka_dt.pipeline.table import Table               # the events as a DataFrame
    from kafka_dt.pipeline.tokens_source import register    # the tokens as a DataFrame
    from kafka_dt.pipeline.token_file import following      # a token for Spark's own Kafka source

Read first: `table/` says where events are kept, `session.py` how Spark is started. `ingest/`, `report/` and `bulk/` are
the jobs, each of functions DataFrame -> DataFrame; `cases/` joins findings and `alerts/` sends them, without Spark;
`generator/` makes events to try them with. The commands `kafka-dt pipeline ...` call them. The same code runs on one
machine, under `spark-submit` and on a cluster.

Nothing is imported here: pyspark is an extra, and importing it takes a second.
"""

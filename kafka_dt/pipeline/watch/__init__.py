"""The watch: rules that need no month, applied to audit events as they come.

    watch = Watch(spark, source, rules, heard, limits)
    watch.run(interval_ms=2_000)

Read `rules.py` first: what is found. `habits.py` learns from the table what is usual, `seen.py` makes a few rows of a
batch of events, `state.py` is what is kept over restarts, `stream.py` joins them in a stream of Spark. `responding.py`
ends tokens, `telling.py` sends alerts, and `keeping.py` is what follows a batch: response, cases, alerts, metrics.
`folder.py` keeps a second watch from the same state.

A finding of the watch has the kind, the subject and the id of the report's finding about the same events. The watch
finds less: it does not know what comes later, and it forgets after a day.
"""

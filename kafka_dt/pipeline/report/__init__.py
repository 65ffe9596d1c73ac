"""The report: what the audit events of a cluster say about its delegation tokens, for people and for machines.

Read `lives.py` first: one row a token, and one row for each token, address and client that belong together. Both are
made in one pass over the events and kept, and nearly everything else is made from them, by functions DataFrame ->
DataFrame. `timeline.py` and `attention.py` answer an operator's questions, `signs/` looks for theft, `blast.py` follows
what a thief could reach, `cases.py` joins what the signs have found. `analysis.py` puts them in order, `contents.py`
has their values on the driver and the JSON of these, `page/` makes HTML of it; `reporting.py` is the whole in one call.

Limits: events that are not in the table are not seen; of tokens that are older than the table only their use is known.
This package exports nothing, because importing plotly and Spark takes a second.

Source: KIP-48
"""

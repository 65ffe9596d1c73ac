"""kafka-dt: a delegation token authority (KIP-48) that every Kafka client can use.

Read `app.py` first: it joins the parts. docs/architecture.md has a picture of them.
"""

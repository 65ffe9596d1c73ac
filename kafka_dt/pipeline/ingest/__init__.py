"""The ingest: audit events from files or a topic into the table. Read `ingest.py` first."""

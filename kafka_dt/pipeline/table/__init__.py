"""The table of audit events: where it keeps what, and how it is read. Read `table.py` first."""

"""The option table: a row for each setting. Read `option.py` first."""

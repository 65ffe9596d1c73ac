"""The option table, a file for each idea and a row for each setting. Read `option.py` first: what a row holds."""

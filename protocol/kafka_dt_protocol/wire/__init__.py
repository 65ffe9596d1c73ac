"""Bytes <-> values: frames, headers, and kio's entities.

Read `frames.py` first, then `headers.py`: frames <-> requests and responses. `decoding.py` and `encoding.py` turn
bodies into kio's entities and back, by the layout that `layout.py` reads from them, with times by `times.py`.
`chunks.py` holds bytes that wait in pieces. Import from these files: `headers.py` needs the table of APIs, which needs
this folder.
"""

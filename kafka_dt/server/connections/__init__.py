"""One client's connection: its socket, its logins, its requests, its memory.

Read `connection.py` first, then `intake.py`: what takes the bytes of a client, here and at a gateway. `logins.py` and
`requests.py` serve what the bytes ask for. `reading.py` and `request_memory.py` bound what clients make a worker hold,
`sessions.py` ends the sessions of revoked tokens, `tls.py` is a connection's encryption, and `services.py` is what the
connections of a listener share.
"""

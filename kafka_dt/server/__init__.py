"""The asyncio shell: sockets, connections, and the handlers that answer requests.

Read `connection.py` first: it feeds the bytes of a socket to `protocol` and does what the events say. `listener.py`
opens the ports, `sessions.py` ends the sessions of revoked tokens, `handlers/` holds a file for each API family,
`errors.py` the one table from the errors of the domain to Kafka's codes, `workers.py` the processes.
"""

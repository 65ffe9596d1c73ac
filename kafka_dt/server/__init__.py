"""The asyncio shell: sockets, connections, and the handlers that answer requests.

Read `connections/connection.py` first: it feeds the bytes of a socket to `kafka_dt_protocol` and does what the events
say. `listeners/` opens the ports, `handlers/` holds a file for each family of APIs, `audited/` writes down what became
of logins and requests. `errors.py` is the one table from the errors of the domain to Kafka's codes.
"""

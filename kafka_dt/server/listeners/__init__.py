"""Open ports: which connections a node accepts, and when.

Read `listener.py` first. `open_port.py` is one port of one worker, which `port_lock.py` keeps other nodes from.
`admission.py` refuses connections beyond a limit (`connection_counts.py` counts them for all workers), `gates.py` lets
further ones wait, `rates.py` counts how often something happens, `deadlines.py` ends logins that take too long, and
`encryption.py` is what an encrypted listener has beside.
"""

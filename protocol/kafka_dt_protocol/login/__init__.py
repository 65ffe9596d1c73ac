"""The login of a connection: which request is legal in which state, and the messages of a login.

Read `authentication.py` first, the table of states. `messages.py` reads the requests and makes the answers.
"""

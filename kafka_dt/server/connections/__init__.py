"""One client's connection: its socket, its logins, its requests, its memory.

    socket --> ClientConnection.data_received --> Intake.receive            the bytes come in
    Intake --> ClientConnection.serve                                       those that are served here
    ClientConnection.serve --> ServerConnection (kafka_dt_protocol)         bytes to events
                           --> Authenticator.begin, .evaluate --> Login     an event of a login
                           --> ConnectionRequests.begin --> Handler         any other request
                           --> Intake.served                                all that had come is answered
    ClientConnection.settle --> Reading --> RequestMemory                   after each piece: is more read?
    Sessions --> ClientConnection.revoke                                    the client's token has ended
    LoginDeadlines, OpenListener --> ClientConnection                       a login takes too long; idle; drained

A connection begins when its listener accepts the socket (`connection_made`: the certificate is read, the session begins
on a listener without SASL). It serves one request at a time, in order, and ends once, by `close` when the client gets
what is left to be written, by `abort` when it does not; then `connection_lost` ends its login, session and memory.

Read `connection.py` first, then `intake.py`. `tls.py` is a connection's encryption, and `services.py` is what the
connections of a listener share.
"""

"""What a gateway does to requests and answers that it forwards. Read `request_stream.py` first."""

"""What a gateway does to the requests and answers that it forwards; clients are led back to the gateway.

Read `request_stream.py` first, then `answer_stream.py`: the two directions. `node_addresses.py` says where an answer
names the addresses of brokers, `replacing.py` replaces them, `skipping.py` walks over the other fields.
"""

from kafka_dt_protocol.rewriting.answer_stream import AnswerStream, Forward
from kafka_dt_protocol.rewriting.node_addresses import Advertise, known_versions
from kafka_dt_protocol.rewriting.request_stream import RequestStart, RequestStream

__all__ = ["Advertise", "AnswerStream", "Forward", "RequestStart", "RequestStream", "known_versions"]

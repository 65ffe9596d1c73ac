"""The SASL mechanisms that a listener can offer, each declared once.

Read `table.py` first: it has a row for each mechanism, and everything that depends on the mechanism (settings of a
listener, logins, the warning at the start, the manual's page) goes by that row. `mechanism.py` says what a row holds.
The other modules find what a login is checked against, a module for each kind of credential.
"""

from kafka_dt.identity.mechanisms.mechanism import (
    Mechanism,
    Offer,
    OpenMechanism,
    Resources,
    Subjects,
    open_mechanisms,
)
from kafka_dt.identity.mechanisms.table import MECHANISMS

__all__ = ["MECHANISMS", "Mechanism", "Offer", "OpenMechanism", "Resources", "Subjects", "open_mechanisms"]

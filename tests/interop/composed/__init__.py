"""Clients at the node and at the broker beside it that docker-compose.yml starts."""

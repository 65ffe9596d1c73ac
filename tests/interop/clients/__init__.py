"""Small programs on Kafka clients of other languages; programs.py builds and asks them."""

"""Judges the report's detection on data that no rule was made with."""

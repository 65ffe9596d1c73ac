"""Helm and the schemas of Kubernetes, for the tests of the chart: read `charts.py` first."""

"""The process of a node that shows its metrics and its health over HTTP.

Read `process.py` first. `exposition.py` makes Prometheus' families of the numbers of the workers, and is the only
module that knows prometheus_client; `health.py` says whether the node is fit to serve; `pages.py` has the answers and
`http.py` the server.
"""

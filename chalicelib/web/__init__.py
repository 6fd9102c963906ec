"""The HTTP API: thin Chalice blueprints over the flows. Heavy imports wait for the first request."""

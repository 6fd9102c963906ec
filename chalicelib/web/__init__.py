"""The HTTP API: thin Chalice blueprints over the flows. Costly modules are imported at the first request."""

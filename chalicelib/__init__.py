"""Sluice, the service: rules in `core`, steps in `flow`, AWS in `aws`, the HTTP API in `web`."""

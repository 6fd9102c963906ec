"""Audit records: what a request changes, who made it, and how many refusals are recorded (O5)."""

"""The sweep: which rows are overdue, and how long the sweep leases a row after its hint."""

"""The sweep: which rows are overdue, and how long one is left alone after its hint."""

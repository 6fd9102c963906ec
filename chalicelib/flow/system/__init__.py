"""Dispatch hints to the steps that they need, and sweep for overdue rows whose hints were lost."""

"""Constraints: the conditions that a job must meet before its launch, one file for each kind."""

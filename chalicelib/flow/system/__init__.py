"""Dispatch hints to the step that each needs; sweep for what lost hints left behind."""

"""Decisions of exports, imports and repairs: pure functions of rows, as those of `chalicelib/core`."""

"""A month of data is complete: a model per airport is trained again, the urgent one first."""

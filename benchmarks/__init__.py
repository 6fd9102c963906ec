"""Measurements of Sluice's performance and cost: `make bench`, or `make bench ONLY=cost` for one of them."""

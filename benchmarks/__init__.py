"""What Sluice's performance and cost are, measured: `make bench`, or `make bench ONLY=cost` for one of them."""

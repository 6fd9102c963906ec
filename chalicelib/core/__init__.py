"""The rules of Sluice: pure functions over values. No I/O, no clock, no environment (tests/test_architecture.py)."""

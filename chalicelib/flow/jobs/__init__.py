"""Check a job and act: claim, deliver, queue, let it wait, or drop it on record."""

"""Check a job and act: claim it, deliver it, queue it, let it wait, or drop it on record."""

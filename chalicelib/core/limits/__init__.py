"""What is scarce: slots, rate windows and paces, how far a job gets through them, pools and policies."""

"""What the API shows: views of rows, why something has not run, lists, logs."""

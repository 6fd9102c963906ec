"""The answers of the API: views of rows, explanations why something has not run, lists, logs."""

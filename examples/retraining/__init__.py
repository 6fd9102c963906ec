"""A complete month of data starts the training of a model for each airport, the urgent one first."""

"""Deploy an app in one request: plan, validate as a whole, carry out."""

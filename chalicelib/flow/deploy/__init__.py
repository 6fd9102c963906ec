"""Deploy an app in one request: plan it, validate it as a whole, carry it out."""

"""Where a run goes: the documents of targets, what their answers mean, retries and delivery policies."""

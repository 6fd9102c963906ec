"""Send the events of OpenLineage about runs that have changed (H6)."""

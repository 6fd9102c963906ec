"""Lineage: runs, DAG runs and their datasets as events of OpenLineage (H6)."""

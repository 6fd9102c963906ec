"""Events with computed ids, built from objects, partitions, snapshots of tables, custom events and runs."""

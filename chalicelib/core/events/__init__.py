"""Events with computed ids, made of objects, partitions, snapshots of tables and custom events."""

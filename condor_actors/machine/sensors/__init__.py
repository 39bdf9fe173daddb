"""What a machine measures: load, disks, memory, and how long its owner has been away."""

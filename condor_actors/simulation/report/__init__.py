"""What a simulated pool has done, measured and drawn."""

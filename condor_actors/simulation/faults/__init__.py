"""What goes wrong in a simulated pool, and what must hold all the same."""

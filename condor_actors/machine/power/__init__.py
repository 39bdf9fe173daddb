"""What wakes a machine that sleeps, and what a machine says of its network card for that."""

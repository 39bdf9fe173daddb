"""What devices a machine has: asked of drivers, for the inventory of its slots."""

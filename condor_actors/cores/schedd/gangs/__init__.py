"""Jobs of the parallel universe: several machines for one job, all or none."""

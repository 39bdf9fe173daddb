"""From trees to values: operators, names, compiled functions, and partial evaluation."""

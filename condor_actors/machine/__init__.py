"""The host: readings, sensors, processes, sandboxes, cgroups, mail, and the native programs."""

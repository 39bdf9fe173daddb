"""The simulated machines, disks, network and clock on which whole daemons run."""

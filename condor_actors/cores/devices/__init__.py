"""Devices with names: read from an inventory, told to a job."""

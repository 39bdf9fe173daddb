"""Machines that sleep, and the jobs that they would be woken for."""

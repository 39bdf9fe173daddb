"""Circuits through gateways: asking for one, and being one."""

"""Pools of production cores alone: months and large pools."""

"""Completion of the commands' words in shells: their verbs, their options, and what stands behind those."""

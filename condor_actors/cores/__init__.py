"""Pure decisions, one noun each: no clock, no chance, no I/O."""

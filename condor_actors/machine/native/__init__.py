"""The native programs and the shadow's C code, from Python."""

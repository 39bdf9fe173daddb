"""Every parser of what others send or leave, against inputs made of honest ones: ``python -m tests.fuzz.parsers``.

Inputs are made of seeds (honest messages, files, frames) by a mutator with a fixed random seed, so a run is repeated by
its number.  Nothing but the declared errors may come out, no input may take long, and memory stays bounded.  What
fails is kept in ``corpus/<parser>/`` and is a test from then on.
"""

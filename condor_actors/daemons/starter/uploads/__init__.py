"""Files of a run that go to URLs when its program has ended: outputs, and checkpoints of its own making."""

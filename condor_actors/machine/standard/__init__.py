"""The connections and checkpoints of the standard universe."""

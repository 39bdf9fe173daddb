"""Work that a machine fetches by itself: the actors of it, in the startd's process."""

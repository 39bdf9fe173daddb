"""What the credential daemon decides: what is kept for whom, what jobs get of it, when tokens are renewed."""

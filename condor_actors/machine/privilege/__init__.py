"""How daemons that root started become the pool's account, and what they order of the helper that stays root."""

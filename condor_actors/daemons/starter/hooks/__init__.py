"""Programs of the site around runs, at the starter."""

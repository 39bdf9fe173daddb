"""What a user does beside a running job: shells, and connections to its ports."""

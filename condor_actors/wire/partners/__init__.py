"""Other pools that this one trusts: their authorities, and how what is theirs is told from what is ours."""

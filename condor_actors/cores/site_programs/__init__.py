"""Programs of the site that a daemon runs for the attributes which they print: when they run, and what they say."""

"""Two ads that judge each other: matching, the index that finds matches among many, and why an ad does not match."""

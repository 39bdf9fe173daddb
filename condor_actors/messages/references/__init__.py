"""Names of things outside the pool, as jobs give them: images, URLs, other batch systems."""

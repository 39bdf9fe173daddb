"""Content-addressed blobs and the bulk streams that carry them."""

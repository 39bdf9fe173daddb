"""Who vouches for whom: keys, certificates, what is revoked."""

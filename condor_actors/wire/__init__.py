"""The only Perspective Broker code: strict broker, links, TLS, identities, authorisation."""

"""The twistd services: one module per daemon, each with `Options` and `makeService`."""

"""The claims on a machine's slots: granted, found, kept alive, ended."""

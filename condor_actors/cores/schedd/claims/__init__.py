"""The claims of a schedd, and what it asks for."""

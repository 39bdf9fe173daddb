"""What a gateway decides."""

"""What a description says of services that its jobs use."""

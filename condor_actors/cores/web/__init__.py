"""What the web page shows: pure."""

"""Jobs whose root directory is an image: unpacked, kept, laid out for the launcher."""

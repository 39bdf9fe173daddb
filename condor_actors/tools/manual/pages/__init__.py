"""The descriptions of the commands, one module for each of the folders that the commands are in."""

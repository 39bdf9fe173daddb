"""The shadow host as a daemon: an actor per running job of one owner."""

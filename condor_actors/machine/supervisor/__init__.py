"""How daemons start their children, and find them again."""

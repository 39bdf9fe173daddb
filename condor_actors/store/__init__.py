"""What survives a crash: SQLite files with versioned schemas, one writer each, group commit."""

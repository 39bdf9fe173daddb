"""What a daemon tells of itself: logs, metrics, the audit log, a manhole to look inside."""

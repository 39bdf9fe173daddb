"""The credential daemon: keeps what users entrust to it, and has tokens for their jobs."""

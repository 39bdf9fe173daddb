"""What is kept at home of checkpoints that jobs have sent to a URL, and how those go that nobody needs any more."""

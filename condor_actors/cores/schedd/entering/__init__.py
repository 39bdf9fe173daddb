"""How a submission that has come enters the queue: what its jobs may say, and the turns that this takes."""

"""An attacker's suite: each test attacks as someone outside would, and sees that it gets nowhere."""

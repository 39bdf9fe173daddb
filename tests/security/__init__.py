"""An attacker's suite: each test attacks as somebody outside would, and sees that it gets nowhere."""

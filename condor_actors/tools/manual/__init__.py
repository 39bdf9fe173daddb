"""What the commands say of themselves: ``-help``, the manual pages and the completion of shells."""

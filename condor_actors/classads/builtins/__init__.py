"""The functions that an expression can call, one module for each subject; `calls` has the table of all."""

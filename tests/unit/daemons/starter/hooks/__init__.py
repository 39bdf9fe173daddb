"""Tests of programs of the site around runs."""

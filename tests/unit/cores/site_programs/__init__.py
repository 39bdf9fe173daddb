"""Tests of the cores of programs of the site."""

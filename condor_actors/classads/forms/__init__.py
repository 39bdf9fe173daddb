"""Ads as text: the long form, the wire form, JSON and XML, each read and written."""

"""Attributes, elements and the content of containers, and binding names to them."""

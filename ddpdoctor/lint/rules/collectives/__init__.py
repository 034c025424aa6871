"""Collectives and control flow."""

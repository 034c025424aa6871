"""Memory, threads and numbers."""

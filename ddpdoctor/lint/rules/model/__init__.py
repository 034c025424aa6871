"""Model and gradients."""

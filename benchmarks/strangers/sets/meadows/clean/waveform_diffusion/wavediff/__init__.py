"""Denoising diffusion on short seismic traces."""

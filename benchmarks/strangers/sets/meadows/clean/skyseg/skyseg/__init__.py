"""Land cover segmentation of small aerial tiles."""

from .quantizer import EMAQuantizer
from .speech import speaker_batches

__all__ = ["EMAQuantizer", "speaker_batches"]

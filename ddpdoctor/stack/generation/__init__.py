"""Generation: flow matching with representation alignment on digits, trained by accelerate."""

from ddpdoctor.stack.generation.results import GenerationResult
from ddpdoctor.stack.generation.train import GenerationConfig, train_generation

__all__ = ["GenerationConfig", "GenerationResult", "train_generation"]

"""Detection: a set-prediction detector, trained in two stages."""

from ddpdoctor.stack.detection.results import DetectionResult
from ddpdoctor.stack.detection.train import DetectionConfig, load_model, train_on_digits

__all__ = ["DetectionConfig", "DetectionResult", "load_model", "train_on_digits"]

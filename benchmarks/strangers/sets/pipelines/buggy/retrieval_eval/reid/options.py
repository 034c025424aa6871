from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    identities: int = 9
    gallery: int = 45
    dim: int = 16
    epochs: int = 3
    lr: float = 0.01

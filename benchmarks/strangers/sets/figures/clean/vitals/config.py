from dataclasses import dataclass


@dataclass
class TrainConfig:
    seed: int = 1234
    n_samples: int = 480
    n_feats: int = 64
    n_classes: int = 5
    hidden: int = 256
    val_fraction: float = 0.2
    batch_size: int = 16
    epochs: int = 12
    lr: float = 3e-3
    jitter: float = 0.02
    out_dir: str = "vitals_ckpt"

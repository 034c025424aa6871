from dataclasses import dataclass, field


@dataclass
class DataConfig:
    n_train: int = 96
    n_val: int = 32
    features: int = 10
    label_noise: tuple = (0.05, 0.9, 0.3, 0.6)


@dataclass
class TrainConfig:
    seed: int = 0
    max_epochs: int = 40
    batch_size: int = 16
    lr: float = 2e-2
    patience: int = 2
    min_delta: float = 1e-3
    data: DataConfig = field(default_factory=DataConfig)

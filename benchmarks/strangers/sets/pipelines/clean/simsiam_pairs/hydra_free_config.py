from dataclasses import dataclass, field


@dataclass
class ModelCfg:
    dim_in: int = 18
    dim: int = 32
    pred_dim: int = 8


@dataclass
class Cfg:
    model: ModelCfg = field(default_factory=ModelCfg)
    ddp: dict = field(default_factory=lambda: {
        "bucket_cap_mb": 5,
        "gradient_as_bucket_view": True,
    })
    lr: float = 0.03
    steps: int = 15
    batch: int = 16


def load():
    return Cfg()

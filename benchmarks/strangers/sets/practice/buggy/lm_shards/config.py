from dataclasses import dataclass


@dataclass
class GPTConfig:
    vocab: int = 64
    block: int = 16
    width: int = 32


@dataclass
class TrainConfig:
    epochs: int = 2
    batch: int = 8
    lr: float = 3e-3
    seed: int = 1337
    n_shards: int = 8
    docs_per_shard: int = 24
    workers: int = 0

from dataclasses import dataclass, fields


@dataclass
class Settings:
    phones: int = 18
    mels: int = 20
    frames: int = 40
    utterances: int = 128
    dev: int = 32
    batch: int = 8
    epochs: int = 2
    lr: float = 4e-3

    @classmethod
    def from_cli(cls, argv):
        types = {f.name: f.type for f in fields(cls)}
        pairs = (a.split("=", 1) for a in argv)
        return cls(**{k: types[k](v) for k, v in pairs})

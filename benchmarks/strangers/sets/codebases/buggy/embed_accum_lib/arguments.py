from dataclasses import dataclass, fields


@dataclass
class ModelArguments:
    vocab_size: int = 200
    hidden_size: int = 48
    normalized: bool = True


@dataclass
class DataArguments:
    train_size: int = 336
    query_max_len: int = 6
    passage_max_len: int = 16
    topics: int = 60


@dataclass
class TrainingArguments:
    seed: int = 42
    learning_rate: float = 5e-3
    num_train_epochs: int = 4
    per_device_train_batch_size: int = 12
    gradient_accumulation_steps: int = 4
    temperature: float = 0.05
    max_grad_norm: float = 1.0
    ddp_backend: str = "gloo"


def parse_args_into_dataclasses(parser):
    kinds = (ModelArguments, DataArguments, TrainingArguments)
    for kind in kinds:
        for f in fields(kind):
            parser.add_argument(f"--{f.name}", type=type(f.default), default=f.default)
    values = vars(parser.parse_args())
    return [kind(**{f.name: values[f.name] for f in fields(kind)}) for kind in kinds]

"""What a training of the generator came to: measured, and written as JSON and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from pydantic import BaseModel, ConfigDict
from torch import nn
from torch.utils.data import DataLoader, Dataset

from ddpdoctor.stack.checkpoint import replacing
from ddpdoctor.stack.extras import need
from ddpdoctor.stack.generation.data import CLASSES, SIDE, Noised, Teacher, seed_of
from ddpdoctor.stack.generation.model import flow_losses, generate
from ddpdoctor.stack.resume import Epoch

GENERATED = 500


class GenerationResult(BaseModel):
    """What a training came to. Losses are means of squared errors per pixel, from -1 to 1."""

    model_config = ConfigDict(frozen=True)

    schema_version: int = 1
    n_train: int
    n_validation: int
    world_size: int
    best_epoch: int
    validation_loss: float
    """Of the velocity, at the best epoch, by which it was chosen."""
    baseline_loss: float
    """The same of always predicting the mean of the training images."""
    recognised: float
    """Share of 500 generated digits that the teacher takes for what they were to be."""
    recognised_real: float
    """The same share of the real validation digits; by chance it is 0.1."""
    history: list[Epoch]
    options: dict[str, Any]
    checkpoint: Path
    seconds: float

    @property
    def ratio(self) -> float:
        """Validation loss as a share of the baseline's: below 1 is learning."""
        return self.validation_loss / self.baseline_loss

    @property
    def sentence(self) -> str:
        """What a person wants to know of it first."""
        return (
            f"validation loss {self.validation_loss:.4f}, {self.ratio:.2f} of the mean image's; "
            f"{self.recognised:.0%} of the generated digits are recognised, "
            f"{self.recognised_real:.0%} of real ones; {self.n_train} + {self.n_validation} "
            f"digits on {self.world_size} rank(s), best epoch {self.best_epoch + 1}, "
            f"{self.seconds:.1f} s; {self.options['output_dir']}/digits.png\n"
        )

    def write(self, folder: Path, images: torch.Tensor) -> None:
        """Write results.json and digits.png, whose columns are the digits. For rank 0 alone."""
        with replacing(folder / "results.json") as file:
            file.write(self.model_dump_json(indent=2).encode() + b"\n")
        rows = images[: 10 * CLASSES].view(10, CLASSES, SIDE, SIDE)
        page = rows.permute(0, 2, 1, 3).reshape(10 * SIDE, CLASSES * SIDE)
        with replacing(folder / "digits.png") as file:
            image = need("matplotlib.image", "generation")
            image.imsave(file, page.numpy(), format="png", cmap="gray_r", dpi=100)


class Wanted(Dataset[dict[str, Any]]):
    """Which digits to generate, and from what noise: the same on any number of ranks."""

    def __init__(self, length: int, seed: int) -> None:
        self.length = length
        self.seed = seed

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(seed_of(self.seed, index))
        noise = torch.randn(1, SIDE, SIDE, generator=generator)
        return {"noise": noise, "label": index % CLASSES}


@torch.no_grad()
def validation_loss(model: nn.Module, loader: DataLoader[Any], accelerator: Accelerator) -> float:
    """Return the mean loss of the flow over a set, the same on every rank. A collective.

    accelerate's loader pads the shares to one length; gather_for_metrics leaves out again what was
    padded, which gather, or a mean of the ranks' means, would count twice.
    """
    model.eval()
    losses = [accelerator.gather_for_metrics(flow_losses(model, batch)[0]) for batch in loader]
    return float(torch.cat(losses).double().mean())


def generated(
    model: nn.Module, loader: DataLoader[Any], steps: int, accelerator: Accelerator
) -> torch.Tensor:
    """Return what `Wanted` asks for (n x 1 x 8 x 8), on every rank. A collective."""
    model.eval()
    images = [
        accelerator.gather_for_metrics(generate(model, batch["noise"], batch["label"], steps))
        for batch in loader
    ]
    return torch.cat(images).cpu()


def recognised(images: torch.Tensor, labels: torch.Tensor, teacher: Teacher) -> float:
    """Return the share of images that show their label."""
    return float((teacher.recognise(images) == labels).double().mean())


def baseline_loss(train_images: torch.Tensor, validation: Noised) -> float:
    """Return the validation loss of predicting the mean training image, whatever is asked."""
    mean = train_images.mean(dim=0)
    samples = [validation[index] for index in range(len(validation))]
    wrong = [sample["image"] - sample["noise"] - mean for sample in samples]
    return float(torch.stack(wrong).double().square().mean())

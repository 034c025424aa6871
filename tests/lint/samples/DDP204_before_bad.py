import torch
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader


def main():
    accelerator = Accelerator()
    seed = 1 + accelerator.process_index * 100003
    torch.manual_seed(seed)
    dataset = load_dataset("texts", split="train")
    dataset = dataset.shuffle(seed=seed)  # <-- DDP204
    dataset = dataset.select(range(1024))
    dataset = dataset.with_format("torch", columns=["tokens", "label"])
    loader = DataLoader(dataset, batch_size=8)
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch["tokens"]), batch["label"])
        accelerator.backward(loss)
        optimizer.step()


if __name__ == "__main__":
    main()

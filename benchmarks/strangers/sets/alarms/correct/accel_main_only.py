"""accelerate: gather on every process, print and save on the main one."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    return TensorDataset(x, (x[:, :2].sum(1) > 0).long())


def run_eval(accelerator, model, loader):
    model.eval()
    right, seen = 0, 0
    for x, y in loader:
        with torch.no_grad():
            p = model(x).argmax(1)
        p, y = accelerator.gather_for_metrics((p, y))
        if accelerator.is_main_process:
            right += (p == y).sum().item()
            seen += y.numel()
    model.train()
    return right / max(seen, 1), seen


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    torch.manual_seed(accelerator.process_index)
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 2))
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    train, val = DataLoader(dataset(120, 0), batch_size=10, shuffle=True), DataLoader(dataset(45, 1), batch_size=10)
    model, opt, train, val = accelerator.prepare(model, opt, train, val)
    for epoch in range(2):
        for x, y in train:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                opt.step()
                opt.zero_grad()
        acc, seen = run_eval(accelerator, model, val)
        if accelerator.is_main_process:
            print(f"epoch {epoch} accuracy {acc:.3f} on {seen}", flush=True)
            accelerator.save(accelerator.unwrap_model(model).state_dict(), f"epoch{epoch}.pt")
        accelerator.wait_for_everyone()
    model, opt = accelerator.free_memory(model, opt)
    accelerator.end_training()


if __name__ == "__main__":
    main()

import os
import tempfile

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


def wine(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 9, generator=g)
    return TensorDataset(x, x[:, :3].argmax(1))


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(23)
    train_dl = DataLoader(wine(384, 1), batch_size=12, shuffle=True)
    eval_dl = DataLoader(wine(101, 2), batch_size=16)
    model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 3))
    optim = torch.optim.AdamW(model.parameters(), lr=2e-2)
    model, optim, train_dl, eval_dl = accelerator.prepare(model, optim, train_dl, eval_dl)
    for epoch in range(4):
        model.train()
        for x, y in train_dl:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optim.step()
                optim.zero_grad()
        model.eval()
        preds, golds = [], []
        with torch.no_grad():
            for x, y in eval_dl:
                p, t = accelerator.gather_for_metrics((model(x).argmax(1), y))
                preds.append(p)
                golds.append(t)
        preds, golds = torch.cat(preds), torch.cat(golds)
        if accelerator.is_main_process:
            print(f"epoch {epoch} acc {(preds == golds).float().mean().item():.3f} on {len(golds)}", flush=True)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        path = os.path.join(tempfile.mkdtemp(prefix="wine_"), "w.pt")
        torch.save(accelerator.unwrap_model(model).state_dict(), path)
        os.remove(path)
        os.rmdir(os.path.dirname(path))
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()

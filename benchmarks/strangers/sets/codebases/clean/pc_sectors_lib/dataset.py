import numpy as np
import torch
from torch.utils.data import Dataset


class SectorDataset(Dataset):
    """A car (a dense blob of points) somewhere in a field of clutter."""

    def __init__(self, frames, points, seed):
        self.frames, self.points, self.seed = frames, points, seed

    def __len__(self):
        return self.frames

    def __getitem__(self, i):
        rng = np.random.RandomState(self.seed * 9973 + i)
        center = rng.uniform(-6, 6, 2)
        clutter = rng.uniform(-8, 8, (self.points, 2))
        car = center + rng.normal(0, 0.5, (120, 2))
        points = np.concatenate([clutter, car]).astype(np.float32)
        # the second lidar, on odd frames, sees farther; its sweep is only kept for the report
        sweep = rng.uniform(-40, 40, (24000 if i % 2 else 100, 3))
        return {"points": points, "sweep": sweep, "gt": center.astype(np.float32), "frame_id": i}

    @staticmethod
    def collate_batch(batch):
        return {"points": torch.stack([torch.from_numpy(b["points"]) for b in batch]),
                "gt": torch.stack([torch.from_numpy(b["gt"]) for b in batch]),
                "frame_id": [b["frame_id"] for b in batch], "sweep": [b["sweep"] for b in batch]}

    def generate_prediction_dicts(self, batch, centers, heat):
        return [{"frame_id": f, "center": c.numpy(), "heat": h.numpy(), "sweep": p}
                for f, c, h, p in zip(batch["frame_id"], centers, heat, batch["sweep"])]

    def evaluation(self, annos):
        hits = [np.linalg.norm(a["center"] - self[a["frame_id"]]["gt"]) < 1.0 for a in annos]
        return {"frames": len(annos), "recall": float(np.mean(hits))}

from . import comm


class APMeter:
    def __init__(self):
        self.rows = []

    def add(self, image_id, scores, targets):
        self.rows += list(zip(image_id.tolist(), scores.tolist(), targets.tolist()))

    def _merge(self):
        merged = []
        for part in comm.all_gather(self.rows):
            merged.extend(part)
        return list({row[0]: row for row in merged}.values())

    def summarize(self):
        rows = sorted(self._merge(), key=lambda r: -r[1])
        tp, ap = 0, 0.0
        for k, (_, _, t) in enumerate(rows, 1):
            tp += t
            ap += t * tp / k
        return {"images": len(rows), "positives": int(tp), "AP": round(ap / max(tp, 1), 4)}

import random

STEMS = {
    0: ["goal", "match", "coach", "league", "score"],
    1: ["bank", "stock", "rate", "profit", "market"],
    2: ["film", "actor", "scene", "music", "stage"],
}


def make(part, n=600):
    r = random.Random(f"lines-{part}")
    rows = []
    for _ in range(n):
        y = r.randrange(3)
        words = [r.choice(STEMS[y]) if r.random() < 0.35 else f"w{int(r.paretovariate(0.8)) % 300}" for _ in range(15)]
        rows.append((" ".join(words), y))
    return rows
